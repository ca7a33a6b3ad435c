package cut_test

import (
	"testing"

	"github.com/setpoint-dev/setpoint/internal/lab/cut"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/spec/openslo"
)

// FuzzFiles: whatever loads can be cut, or is refused with an error; what is
// cut loads, and says of a second cut by one that nothing is left to do.
func FuzzFiles(f *testing.F) {
	for _, file := range shipped(f) {
		f.Add(file.Data)
	}
	f.Add([]byte(world))
	f.Add([]byte("# only a comment\n"))
	f.Add([]byte("apiVersion: setpoint.dev/v1alpha1\nkind: Remediation\nmetadata: {name: a}\nspec: {service: a}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		in := []spec.File{{Name: "f.yaml", Data: data}}
		out, err := cut.Files(in, options())
		if err != nil {
			return
		}
		if _, err := spec.Load(in, []spec.Reader{openslo.Reader{}}); err != nil {
			t.Fatalf("what does not load was cut: %v", err)
		}
		once := load(t, out)
		again, err := cut.Files(out, options(func(o *cut.Options) { o.Factor = 1 }))
		if err != nil {
			t.Fatalf("what was cut cannot be cut: %v\n%s", err, out[0].Data)
		}
		if twice := load(t, again); once.Digest != twice.Digest {
			t.Fatalf("a cut by one changes the documents:\n%s\n%s", out[0].Data, again[0].Data)
		}
	})
}
