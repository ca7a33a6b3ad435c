package tiny

import (
	"os"
	"testing"
)

func TestLess(t *testing.T) {
	t.Run("smaller", func(t *testing.T) {
		if !Less(1, 2) {
			t.Error("1 is less than 2")
		}
	})
	t.Run("equal", func(t *testing.T) {
		if Less(1, 1) {
			t.Error("1 is not less than 1")
		}
	})
}

func TestDown(t *testing.T) {
	if Down(3) != 0 {
		t.Error("want 0")
	}
}

func TestGoroutine(t *testing.T) {
	done := make(chan int)
	go func() {
		done <- 1 / (2 - Down(2) - 1)
	}()
	if <-done != 1 {
		t.Error("want 1")
	}
}

func TestAlwaysFails(t *testing.T) { t.Error("by itself") }

func TestExits(*testing.T) {
	if Most != 10 {
		os.Exit(3)
	}
}

func TestSkips(t *testing.T) { t.Skip("nothing here") }
