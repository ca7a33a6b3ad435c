package setpoint.gate

risky if input.action.reversal in {"irreversible", "restore"}

auto contains "x" if not risky
