package setpoint.gate

auto contains {"reason": "x"} if true
