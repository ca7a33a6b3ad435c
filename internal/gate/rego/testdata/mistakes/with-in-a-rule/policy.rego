package setpoint.gate

calm if input.state.state == "breached"

auto contains "x" if calm with input.state.state as "met"
