package rego_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/gate/rego"
)

// What is evaluated must be what the schema allows, whoever checks it: the one
// pass and the general validator agree on every input.
func FuzzParseInput(f *testing.F) {
	good := string(input(f, granted()))
	f.Add([]byte(good))
	for _, change := range [][2]string{
		{`"remaining":3`, `"remaining":null`}, {`"remaining":3`, `"remaining":"3"`}, {`"remaining":3`, `"remaining":"unknown"`},
		{`"remaining":3`, `"remaining":1e999`}, {`"remaining":3`, `"remaining":3.0`}, {`"remaining":3`, `"remaining":3,"remaining":4`},
		{`"undo":false`, `"undo":"false"`}, {`"undo":false`, `"undo":false,"more":1`}, {`"tried":[]`, `"tried":{}`}, {`"tried":[]`, `"tried":[{}]`},
		{`"class":"auto"`, `"class":"aut0"`}, {`"live":{"replicas":4}`, `"live":"unknown"`}, {`"live":{"replicas":4}`, `"live":{"a":["x"],"b":true}`},
		{`"live":{"replicas":4}`, `"live":{"a":[1]}`}, {`"live":{"replicas":4}`, `"live":{"a":{}}`}, {`{"action"`, `[{"action"`}, {`"now":"2026`, `"now":"\ud800`},
		{`gate/v1`, `gate/v2`}, {`"mode":"auto"`, `"mode":"AUTO"`}, {`"name":"checkout"`, `"name":""`},
	} {
		if !strings.Contains(good, change[0]) {
			f.Fatalf("the input has no %s", change[0])
		}
		f.Add([]byte(strings.Replace(good, change[0], change[1], 1)))
	}
	f.Add([]byte(good + "1"))
	f.Add([]byte(good + " "))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := rego.ParseInput(raw)
		doc, want := gate.DecodeInput(raw)
		if (err == nil) != (want == nil) {
			t.Fatalf("one pass says %v, the validator %v, of %s", err, want, raw)
		}
		if err != nil {
			return
		}
		value, err := ast.InterfaceToValue(doc)
		if err != nil {
			t.Fatal(err)
		}
		// Texts of numbers beyond a float64 are kept whole, where decoding rounds.
		if got.Compare(value) != 0 && !longNumber(raw) {
			t.Errorf("value %s, want %s", got, value)
		}
	})
}

// longNumber reports whether a number may have more digits than a float64.
func longNumber(raw []byte) bool {
	digits := 0
	for _, b := range raw {
		if bytes.IndexByte([]byte("0123456789.eE+-"), b) < 0 {
			digits = 0
		} else if digits++; digits > 15 {
			return true
		}
	}
	return false
}
