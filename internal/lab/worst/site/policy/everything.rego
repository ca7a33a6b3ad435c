# METADATA
# title: Everything is allowed, at any time
package setpoint.gate

auto contains "anything" if true
