# METADATA
# title: Everything is allowed, at any time, to everybody
package setpoint.gate

auto contains "anything" if true
