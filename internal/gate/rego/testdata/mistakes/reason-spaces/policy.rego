package setpoint.gate

auto contains "It Is Fine" if true
