package cut_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/lab/cut"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

func shipped(t testing.TB) []spec.File {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("..", "..", "..", "slo", "*.yaml"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	var files []spec.File
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, spec.File{Name: filepath.Base(name), Data: data})
	}
	return files
}

func TestSmoke(t *testing.T) {
	out, err := cut.Files(shipped(t), cut.Options{Factor: 30, BurnRate: spec.BurnRate{Short: 10 * time.Second, Long: 50 * time.Second, Factor: 14.4}, Targets: "http://127.0.0.1:1234"})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range out {
		t.Logf("%s\n%s", f.Name, f.Data)
	}
}
