package setpoint.gate

auto contains "x" if input.proposal.parameters.replicas > 100
