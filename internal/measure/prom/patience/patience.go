// Package patience decides when a source is asked again, and in what portions.
// It takes the faults of its answers and the present, and gives whether a query
// may be sent, what is known of it already, and how many services may share it.
//
// It is memory only, bounded, and the same for the same answers and clock:
// whatever is forgotten costs a query that fails once more.
package patience
