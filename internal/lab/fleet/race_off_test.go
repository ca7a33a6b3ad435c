//go:build !race

package fleet_test

const racing = false
