package world_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/lab/crash/world"
)

func TestTry(t *testing.T) {
	bin := os.Getenv("TRY_BIN")
	if bin == "" {
		t.Skip()
	}
	_ = exec.Command
	dir, _ := os.MkdirTemp("", "sc")
	t.Log(dir)
	s, err := world.NewSlot(bin, filepath.Join(dir, "s1"))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	w, err := s.New(t.Context(), world.Options{Class: os.Getenv("TRY_CLASS")})
	if err != nil {
		t.Fatal(err)
	}
	t.Log("seed", time.Since(began))
	began = time.Now()
	a, err := w.Start(world.Rig{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Kill()
	go w.Answer(t.Context())
	err = w.Until(t.Context(), a, 15*time.Second, func() bool { return w.Settled(t.Context()) })
	t.Log("settled", time.Since(began), err)
	t.Log(a.Stop(5 * time.Second))
	t.Log(time.Since(began))
	pts, err := w.Points()
	for _, p := range pts {
		t.Log(p.At-began.UnixMilli(), p.Point)
	}
	x, err := w.Export(t.Context())
	t.Log(len(x.Entries), err)
	t.Log(string(w.Log()))
}
