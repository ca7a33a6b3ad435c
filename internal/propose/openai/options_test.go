package openai_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/propose/openai"
)

func TestKeyPrintsAsSecret(t *testing.T) {
	t.Parallel()
	e := openai.Endpoint{Name: "main", Key: canary}
	j, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{fmt.Sprint(e), fmt.Sprintf("%+v %#v %q %x", e, e, e.Key, e.Key), e.Key.String(), e.Key.GoString(), e.Key.LogValue().String(), string(j)} {
		if strings.Contains(s, "canary") || strings.Contains(s, fmt.Sprintf("%x", "canary")) || !strings.Contains(s, "secret") {
			t.Errorf("printed: %s", s)
		}
	}
}

func TestOptionsFaults(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		edit   func(*openai.Options)
		err    string
	}{
		"Fine":     {reason: "As configured.", edit: func(*openai.Options) {}},
		"None":     {reason: "Somebody must be asked.", edit: func(o *openai.Options) { o.Endpoints = nil }, err: "proposer openai: no endpoint is configured: name one under proposer.endpoints"},
		"Prompts":  {reason: "Something must be said.", edit: func(o *openai.Options) { o.Prompts = nil }, err: "proposer openai: no prompts are loaded"},
		"Reply":    {reason: "A known mode.", edit: func(o *openai.Options) { o.Reply = "text" }, err: `proposer openai: endpoint 1 (e1): unknown reply "text", want json_schema, tool, json_object or auto`},
		"Scheme":   {reason: "HTTP.", edit: func(o *openai.Options) { o.Endpoints[0].BaseURL = "file:///etc" }, err: "proposer openai: endpoint 1 (e1): baseURL must be like https://host/v1"},
		"Userinfo": {reason: "A URL is printed.", edit: func(o *openai.Options) { o.Endpoints[0].BaseURL = "http://u:p@h/v1" }, err: "proposer openai: endpoint 1 (e1): baseURL must have no user, query or fragment: a key belongs in apiKeyFile"},
		"KeyLine":  {reason: "A header is one line.", edit: func(o *openai.Options) { o.Endpoints[0].Key = "a\nb" }, err: "proposer openai: endpoint 1 (e1): the API key holds a space or a control character"},
		"NoModel":  {reason: "Named.", edit: func(o *openai.Options) { o.Endpoints[0].Model = "" }, err: "proposer openai: endpoint 1 (e1): needs a name and a model"},
		"Twice":    {reason: "Names are labels.", edit: func(o *openai.Options) { o.Endpoints = append(o.Endpoints, o.Endpoints[0]) }, err: "proposer openai: two endpoints are named e1"},
		"Negative": {reason: "Bounds bound.", edit: func(o *openai.Options) { o.MaxBody = -1 }, err: "proposer openai: a limit is negative"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t, "http://127.0.0.1:1")
			tc.edit(&o)
			_, err := openai.New(o)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.err, got); diff != "" {
				t.Errorf("%s\nNew(…): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
