package rego_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/policies"
)

// The ledger keeps a bundle under the digest of its bytes, and a decision names
// its revision: the two must be one.
func TestPack(t *testing.T) {
	b, err := rego.Read(policies.FS)
	if err != nil {
		t.Fatal(err)
	}
	if got := ledger.BlobDigest(b.Pack()); got != b.Revision() {
		t.Errorf("the packed bundle is blob %s, its revision %s", got, b.Revision())
	}
	again, err := rego.Unpack(b.Pack())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.Files(), again.Files()); diff != "" || again.Revision() != b.Revision() || again.DataDigest() != b.DataDigest() {
		t.Errorf("another bundle came back (-packed +unpacked):\n%s", diff)
	}
}

func TestDataDigest(t *testing.T) {
	read := func(files ...string) rego.Bundle {
		b, err := rego.Read(bundle(files...))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	one := read("p.rego", four, "data.yaml", "a: 1\n")
	if other := read("p.rego", four+"\n", "data.yaml", "a: 1\n"); other.DataDigest() != one.DataDigest() || other.Revision() == one.Revision() {
		t.Error("other rules over the same data")
	}
	if other := read("p.rego", four, "data.yaml", "a: 2\n"); other.DataDigest() == one.DataDigest() || other.Revision() == one.Revision() {
		t.Error("the same rules over other data")
	}
}

func FuzzUnpack(f *testing.F) {
	b, err := rego.Read(bundle("p.rego", four, "data.yaml", "a: 1\n"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b.Pack())
	f.Add(b.Pack()[:20])
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 9, 'x'})
	f.Add([]byte{255, 255, 255, 255, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, raw []byte) {
		b, err := rego.Unpack(raw)
		if err == nil && !bytes.Equal(b.Pack(), raw) {
			t.Errorf("%q was read as another bundle", raw)
		}
	})
}
