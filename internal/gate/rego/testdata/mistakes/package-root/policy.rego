package setpoint

gate := {"auto": {"x"}}
