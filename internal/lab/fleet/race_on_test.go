//go:build race

package fleet_test

// racing: the race detector makes everything slower, and large numbers prove
// nothing more to it.
const racing = true
