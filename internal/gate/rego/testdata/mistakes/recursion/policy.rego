package setpoint.gate

a if b

b if a

auto contains "x" if a
