package setpoint.gate

# METADATA
# title: The service's documents changed recently
# description: >-
#   What people just wrote has not been seen to work; the first actions under it
#   are theirs to allow.
# custom:
#   remedy: wait for one holdFor without an episode
approval contains "fresh-documents" if {
	runnable
	is_number(input.documents.changedSeconds)
}
