// Package lab is the map of what must never ship in the agent: the simulated
// shop, Prometheus's own engine in process, the stand-ins for a model and a
// pager, the demo and the evals. It holds no code itself.
//
//	prom      promql, tsdb and the scrape manager behind /api/v1/query
//	shop      three services that really degrade, and the actuator that changes them
//	model     an OpenAI-compatible endpoint whose brain is a rules file
//	pager     a receiver of pages that writes down what people would see
//	cut       slo/ with every duration cut by one factor
//	scenario  the evals, in simulated time
//	demo      the demo, in real time
package lab
