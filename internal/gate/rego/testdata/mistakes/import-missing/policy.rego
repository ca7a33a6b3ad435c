package setpoint.gate

import data.setpoint.lib.missing

auto contains "x" if missing.ok
