package setpoint.gate

auto contains "day" if time.now_ns() > 0
