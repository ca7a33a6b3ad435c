package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/setpoint-dev/setpoint/internal/config"
)

func TestSecretNeverPrintsItself(t *testing.T) {
	const value = "hunter2"
	s := config.NewSecret([]byte(value + "\n"))
	if s.Reveal() != value || s.Empty() {
		t.Fatalf("Reveal is %q, want %q without the line end", s.Reveal(), value)
	}
	type holder struct {
		Key  config.Secret
		Keys []config.Secret
		Ptr  *config.Secret
		Map  map[string]config.Secret
		any  any
	}
	h := holder{Key: s, Keys: []config.Secret{s}, Ptr: &s, Map: map[string]config.Secret{"a": s}, any: s}
	var out []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%p", "%U", "%c", "%e"} {
		for _, x := range []any{s, &s, h, &h, []any{s}, map[string]any{"k": s}} {
			out = append(out, fmt.Sprintf(verb, x))
		}
	}
	out = append(out, fmt.Sprint(s), fmt.Sprintln(h), s.String(), s.GoString())
	for _, marshal := range []func(any) ([]byte, error){json.Marshal, yaml.Marshal} {
		text, err := marshal(struct{ Key config.Secret }{s})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(text))
	}
	var log bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(handler).Info("x", "secret", s, "holder", h, "pointer", &s)
	}
	out = append(out, log.String())
	for _, text := range out {
		for _, leak := range []string{value, fmt.Sprintf("%x", value), fmt.Sprintf("%X", value)} {
			if strings.Contains(text, leak) {
				t.Errorf("the secret shows itself: %s", text)
			}
		}
	}
	if got := fmt.Sprintf("%v %s %q", s, s, s); got != "<secret> <secret> <secret>" {
		t.Errorf("prints as %s", got)
	}
}

func TestSecretRoundTripIsNoWayOut(t *testing.T) {
	var zero config.Secret
	if zero.Reveal() != "" || !zero.Empty() || zero.String() != "<secret>" {
		t.Errorf("the zero secret reveals %q and prints %s", zero.Reveal(), zero)
	}
}
