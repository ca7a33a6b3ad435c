package setpoint.gate

auto contains "env" if opa.runtime().env.OK == "1"
