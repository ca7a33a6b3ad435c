package prom_test

import (
	"testing"
	"time"
)

func eventually(t *testing.T, within time.Duration, ok func() bool, last func() any) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(within); time.Now().Before(end); <-tick.C {
		if ok() {
			return
		}
	}
	t.Fatalf("not within %s: %+v", within, last())
}
