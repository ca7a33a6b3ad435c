package setpoint.gate

auto contains "x" if input.tried[_].secondsAgo > "10"
