// Package lab is the map of what must never ship in the agent. It holds no code
// itself.
//
// The demo and the evals:
//
//	prom        promql, tsdb and the scrape manager behind /api/v1/query
//	shop        three services that really degrade, and the actuator that changes them
//	model       an OpenAI-compatible endpoint whose brain is a rules file
//	pager       a receiver of pages that writes down what people would see
//	cut         slo/ with every duration cut by one factor
//	scenario    the evals, in simulated time
//	demo        the demo, in real time
//
// The proofs of one effect per key:
//
//	crash       a real agent, hit once at every place where an effect could be lost
//	            or repeated
//	faultproxy  faults between a client and one upstream, HTTP or any other protocol
//	checker     names the invariants that a ledger and an actuator's journal break;
//	            it shares no fold and no transition with the product
//	sim         the pure packages with several replicas, people and a hostile proposer,
//	            by seed; and every order of small worlds
//	mutants     the product with one promise broken, and the test that notices
//
// # One effect per key, tried
//
// `make crash` builds the agent with its kill points (tag crashtest), hits real
// processes, runs simulation, orders and mutants, and prints this table. It exits 2
// when a row has a double effect, a lost acknowledged entry or a violation, when
// the simulation never reaches one of its states, or when a mutant survives. One
// run on 2 cores:
//
//	TABLE
//
// `make mutants` runs each mutant alone and prints what caught it. A point of a
// row is tried again by the command that its failure prints, for example
//
//	setpoint-lab crash --point "kill/auto/ok/kill at after started#1" --keep histories
//	setpoint-lab sim --seed 4711 -v
//	setpoint-lab check --ledger ledger.jsonl --journal journal.jsonl
//
// What no row covers: a power cut (the order of writes below fsync is the file
// system's word; the syncs themselves are counted), a lost or lying disk, PostgreSQL
// behind a pooler, and a clock that is wrong in the same way on the agent and on
// all of its sources.
package lab
