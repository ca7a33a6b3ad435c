package setpoint.gate

# Compares the text "unknown" as if it were a number; the sort order makes it
# larger, so nothing is granted.
auto contains "fresh" if input.documents.changedSeconds < 60
