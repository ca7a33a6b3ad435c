// Package fleet makes fleets of services for scale tests and benchmarks. It
// takes how many services, of what shape, traffic and history, and gives a
// Prometheus in this process that holds their samples, the documents of their
// SLOs, and a whole agent over them. The same options give the same fleet, to
// the bit.
//
// Its tests and benchmarks say what measuring a fleet costs, each as a ratio
// or a count from one run of one binary, over HTTP on loopback. Counts are
// tests; no test is about time. All benchmarks: make bench. One of them:
//
//	go test ./internal/lab/fleet -run '^$' -benchtime 500ms -bench NAME
//	go test ./internal/lab/fleet -v -run NAME
//
//	B1   -bench 'Pass/due'          a sweep / its queries sent bare, 10,000 SLOs; ratio at most 1.40
//	     -bench 'Pass/look'         the same, measured and compared only
//	     -bench 'Pass/whole'        the same with every window due
//	B2   -bench OneByOne            one service per query / our sweep, 1,000 SLOs, 5m; ratio at least 25
//	B3   -run Queries               ceil(n/100) queries for each expression of a window that is due;
//	                                at most 1.5 a sweep for each, five windows up to 30d
//	B4   -run SamplesOfSixHours     samples read / with all windows in each sweep; at most 1/40
//	B5   -bench Growth              exponent from 100 to 10,000 SLOs; client at most 1.05, whole 1.15
//	B9   -run SweepsKeepTheirTime   ten thousand sweeps, each within 1 % of its time; late ones counted
//	B14  -bench Heap                megabytes for 1,000 services between sweeps; at most 5
//	B15  -run Budget                30-day budget against the raw query, spiky traffic; at most 0.5 % off
//	B16  -bench Restart             restart to the end of the first sweep / a normal sweep; at most 2
//	     -run HealthyPassAsksNobody questions to a model and evaluations of the policy: none
//
// Those of the loop and its brakes stand beside the loop, in internal/reconcile,
// over a stub source, a stub model and a real ledger:
//
//	go test ./internal/reconcile -run '^$' -bench NAME
//	go test ./internal/reconcile -v -run NAME
//
//	B8      -bench BreachToEffect       breach visible to effect, in sweep intervals, real time; p50 at most
//	                                    0.55, p99 1.05; with a hint 0.1
//	B10     -run 'OneModelCall|PendingApprovalCalls|TwoReplicasCall'
//	                                    calls of the model per window of a breach: one, whatever happens
//	B17     -bench AllBreachedAtOnce    a sweep in which 1,000 services are breached / one in which they are met,
//	                                    storm brake off; at most 1.5 but for the sweep that finds the breach
//	        -run AllBreachedAtOnce      calls within the limit, and everybody told of
//	        -bench LongPast             a sweep with 10,000 closed episodes in the ledger / without; about 1
//	INV-10  -run PaceDoesNotGrow        effects per rolling hour at 1 and 50 times the loop's speed: as many
//
// How much harm the worst proposer can do is no benchmark: setpoint-lab worst.
//
// In a benchmark A and B take turns, seven times, and the medians are compared:
// "ratio" by time that passed, "cpu-ratio" by processor time, which other work
// on the machine stretches less. Server and agent share the process, so the
// garbage of one is collected among the memory of the other. The server answers
// faster than a real one, which logs, traces and authorises each query: what is
// saved by asking fewer queries is therefore a lower bound.
package fleet
