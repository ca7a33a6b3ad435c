package setpoint.gate

# METADATA
# title: A dependency is down, so acting here would treat a symptom
# description: >-
#   Setpoint holds such a service in any case; this rule hands it over at once.
# custom:
#   remedy: look at the dependency first
escalate contains "dependency-down" if {
	some dependency in input.dependencies
	dependency.state == "breached"
}
