// Package measure is the observed state: it turns objectives into queries at
// explicit instants, and gives Measurements: good and total counts with the
// time of the sample they rest on, or the reason why nothing is known.
//
// A service's queries are compiled once (Compile). A pass asks for those that
// are due (Held): the judge window each time, longer windows at a cadence in
// proportion to their length. A Batch turns queries into Requests, one for many
// services whose PromQL differs only in the values of equality matchers, and
// the answers back into Measurements.
//
// The package is pure; the Prometheus HTTP API is in measure/prom.
//
// # What it costs
//
// Each row is a ratio or a count of one run, over HTTP on loopback, against
// Prometheus's own engine in the same process, on two cores. Two counters a
// service are the least there can be: the server's share grows with the series,
// ours does not. `go doc ./internal/lab/fleet` has the command of each row, and
// `make bench` runs them all. Rows with a # are counts and are tests.
//
//	                                                        measured       wanted
//	B1   a sweep of 10,000 SLOs / its queries sent bare     3.0 (3.5)      1.40   missed
//	     measured and compared only                         1.4 (1.6)      1.40
//	B2   1,000 SLOs one by one / our pass, 5m               10.5           25     missed
//	B3#  queries for n SLOs of one shape, in chunks of 100  ceil(n/100)    the same
//	     amortised a sweep of 15 s, 5m 1h 6h 3d 30d         1.13           1.5
//	B4#  samples read / with all windows in each sweep      1/551          1/40
//	B5   growth of the cost, 100 to 10,000 SLOs             n^1.02         n^1.15
//	     of our part of it                                  n^1.07         n^1.05 missed
//	B9#  a sweep's time after 10,000 with slow queries      within 1 %     1 %
//	B14  memory for 1,000 services, without the documents   8.5 MB         5 MB   missed
//	B15# 30-day budget from recorded counts, spiky traffic  0.26 % off     0.5 %
//	     from held values, of their own moment              0.005 % off    0.5 %
//	B16  restart / a normal sweep                           2.8 (3.1)      2      missed
//	#    model calls and policy evaluations, healthy        0              0
//
// Times are of the processor, those in brackets of the clock. B2 has a bound: at
// this server's speed a client that costs nothing would reach about 20. Of B1
// some 35 µs a service are its pass: ledger, steps, telemetry.
package measure
