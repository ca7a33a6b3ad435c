package setpoint.gate

auto contains "luck" if rand.intn("x", 2) == 1
