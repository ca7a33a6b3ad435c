package setpoint.gate

auto contains "from-a-test" if true
