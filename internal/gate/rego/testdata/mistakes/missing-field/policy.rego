package setpoint.gate

far if input.blast_radius > 3

auto contains "near" if not far
