package propose_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/propose"
)

func TestParse(t *testing.T) {
	t.Parallel()
	action := func(name, why string, p propose.Parameters) propose.Proposal {
		return propose.Proposal{Kind: propose.KindAction, Action: name, Parameters: p, Rationale: why}
	}
	six := action("scale", "load", propose.Parameters{"replicas": int64(6)})
	const good = `{"action":"scale","parameters":{"replicas":6},"rationale":"load"}`
	cases := map[string]struct {
		reason string
		reply  string
		want   propose.Proposal
		err    string
	}{
		"Bare":          {reason: "One object is a reply.", reply: good, want: six},
		"Spaced":        {reason: "JSON's white space around it is none of its content.", reply: "\n\t " + good + "\r\n", want: six},
		"Fenced":        {reason: "One fence around the whole answer is stripped.", reply: "```json\n" + good + "\n```\n", want: six},
		"FencedNoInfo":  {reason: "A fence needs no info string.", reply: "```\n" + good + "\n```", want: six},
		"FencedCRLF":    {reason: "A carriage return is white space.", reply: "```json\r\n" + good + "\r\n```", want: six},
		"QuotesInside":  {reason: "Back quotes in a string are text.", reply: `{"action":"restart","parameters":{},"rationale":"log shows ` + "```panic```" + `"}`, want: action("restart", "log shows ```panic```", propose.Parameters{})},
		"FencedQuotes":  {reason: "Also inside a fence.", reply: "```json\n" + `{"action":"restart","parameters":{},"rationale":"a ` + "```" + `"}` + "\n```", want: action("restart", "a ```", propose.Parameters{})},
		"None":          {reason: "To do nothing is an answer.", reply: `{"action":"none","parameters":{},"rationale":""}`, want: propose.Proposal{Kind: propose.KindNone, Parameters: propose.Parameters{}}},
		"Escalate":      {reason: "To hand over is an answer.", reply: `{"action":"escalate","parameters":{},"rationale":"db"}`, want: propose.Proposal{Kind: propose.KindEscalate, Parameters: propose.Parameters{}, Rationale: "db"}},
		"AllTypes":      {reason: "A whole number is a number; its type is the parameter's.", reply: `{"action":"tune","parameters":{"ratio":1,"cache":true,"pool":"large","zone":"b7"},"rationale":""}`, want: action("tune", "", propose.Parameters{"ratio": 1.0, "cache": true, "pool": "large", "zone": "b7"})},
		"FromState":     {reason: "A candidate of the live list is permitted.", reply: `{"action":"rollback-flag","parameters":{"version":"v40"},"rationale":""}`, want: action("rollback-flag", "", propose.Parameters{"version": "v40"})},
		"LineBreakInIt": {reason: "An escaped line break is text; display folds it.", reply: `{"action":"none","parameters":{},"rationale":"a\nb"}`, want: propose.Proposal{Kind: propose.KindNone, Parameters: propose.Parameters{}, Rationale: "a\nb"}},
		"Surrogates":    {reason: "A whole pair is a character.", reply: `{"action":"none","parameters":{},"rationale":"\ud83d\udd25 \\ud83d"}`, want: propose.Proposal{Kind: propose.KindNone, Parameters: propose.Parameters{}, Rationale: "🔥 \\ud83d"}},
		"LongestWords":  {reason: "500 characters, not bytes.", reply: `{"action":"none","parameters":{},"rationale":"` + strings.Repeat("ü", 500) + `"}`, want: propose.Proposal{Kind: propose.KindNone, Parameters: propose.Parameters{}, Rationale: strings.Repeat("ü", 500)}},

		"Empty":             {reason: "Nothing is not none.", reply: " \n", err: "the reply is empty"},
		"TooLong":           {reason: "Bounded before anything reads it.", reply: good + strings.Repeat(" ", propose.MaxReply), err: "the reply is longer than 65536 bytes"},
		"ProseBefore":       {reason: "No object is picked out of text.", reply: "Here: " + good, err: "the reply is no proposal: not exactly one JSON object: invalid character 'H' looking for beginning of value"},
		"ProseAfterFence":   {reason: "Nor out of a fence in text.", reply: "```json\n" + good + "\n```\nbye", err: "the reply starts with a fence that does not end it on a line of its own"},
		"TwoFences":         {reason: "Exactly one.", reply: "```json\n" + good + "\n```\n```json\n" + good + "\n```", err: "the reply is no proposal: not exactly one JSON object: invalid character '`' after top-level value"},
		"OtherFence":        {reason: "Another language is something else.", reply: "```yaml\n" + good + "\n```", err: "the reply starts with a fence that is not ```json on a line of its own"},
		"OpenFence":         {reason: "Cut off.", reply: "```json\n" + good, err: "the reply starts with a fence that does not end it on a line of its own"},
		"TwoObjects":        {reason: "Two actions in one answer are none.", reply: good + good, err: "the reply is no proposal: not exactly one JSON object: invalid character '{' after top-level value"},
		"List":              {reason: "A list of one is no object.", reply: "[" + good + "]", err: "the reply is no proposal: not a JSON object but a list"},
		"TrailingComma":     {reason: "Nothing is repaired.", reply: `{"action":"none","parameters":{},"rationale":"",}`, err: "the reply is no proposal: not exactly one JSON object: invalid character '}' looking for beginning of object key string"},
		"CutOff":            {reason: "Half an object.", reply: `{"action":"none"`, err: "the reply is no proposal: not exactly one JSON object: unexpected end of JSON input"},
		"ByteOrderMark":     {reason: "Not white space in JSON.", reply: "\ufeff" + good, err: `the reply is no proposal: not exactly one JSON object: invalid character 'ï' looking for beginning of value`},
		"InvalidUTF8":       {reason: "Would become another text.", reply: `{"action":"none","parameters":{},"rationale":"` + "\xff" + `"}`, err: "the reply is no proposal: not valid UTF-8"},
		"LoneHigh":          {reason: "Would become another text.", reply: `{"action":"none","parameters":{},"rationale":"\ud83d"}`, err: `the reply is no proposal: a \u escape is half of a surrogate pair`},
		"LoneLow":           {reason: "Would become another text.", reply: `{"action":"none","parameters":{},"rationale":"\udd25"}`, err: `the reply is no proposal: a \u escape is half of a surrogate pair`},
		"HighThenOther":     {reason: "Would become another text.", reply: `{"action":"none","parameters":{},"rationale":"\ud83d\u0041"}`, err: `the reply is no proposal: a \u escape is half of a surrogate pair`},
		"RawControl":        {reason: "Invalid JSON.", reply: "{\"action\":\"none\",\"parameters\":{},\"rationale\":\"a\nb\"}", err: `the reply is no proposal: not exactly one JSON object: invalid character '\n' in string literal`},
		"EscapedControl":    {reason: "Something is broken.", reply: `{"action":"none","parameters":{},"rationale":"a\u0000"}`, err: "the key rationale holds a control character"},
		"UnknownKey":        {reason: "No room for a confidence.", reply: `{"action":"none","parameters":{},"rationale":"","confidence":1}`, err: `unknown key "confidence": the reply has exactly the keys action, parameters and rationale`},
		"WrongCase":         {reason: "encoding/json would take it.", reply: `{"Action":"none","parameters":{},"rationale":""}`, err: `unknown key "Action": the reply has exactly the keys action, parameters and rationale`},
		"LookAlike":         {reason: "A Cyrillic a is another key.", reply: `{"аction":"none","parameters":{},"rationale":""}`, err: `unknown key "\u0430ction": the reply has exactly the keys action, parameters and rationale`},
		"DuplicateKey":      {reason: "The last would win in silence.", reply: `{"action":"none","action":"scale","parameters":{},"rationale":""}`, err: `the reply is no proposal: the key "action" is given twice`},
		"MissingKey":        {reason: "All three.", reply: `{"action":"none","parameters":{}}`, err: "the key rationale is missing"},
		"NullParameters":    {reason: "null is no object.", reply: `{"action":"none","parameters":null,"rationale":""}`, err: "the key parameters must be an object, not null"},
		"ActionNumber":      {reason: "Typed.", reply: `{"action":1,"parameters":{},"rationale":""}`, err: "the key action: must be a string, not a number"},
		"RationaleList":     {reason: "Typed.", reply: `{"action":"none","parameters":{},"rationale":[]}`, err: "the key rationale: must be a string, not a list"},
		"RationaleLong":     {reason: "Rejected, not cut.", reply: `{"action":"none","parameters":{},"rationale":"` + strings.Repeat("x", 501) + `"}`, err: "the key rationale has 501 characters, more than 500"},
		"UnknownAction":     {reason: "Never mapped to the nearest name.", reply: `{"action":"drain_node","parameters":{"node":"a"},"rationale":""}`, err: `unknown action "drain_node": use one of scale, rollback-flag, tune, restart, none, escalate`},
		"ActionCase":        {reason: "Names are exact.", reply: `{"action":"Scale","parameters":{"replicas":6},"rationale":""}`, err: `unknown action "Scale": use one of scale, rollback-flag, tune, restart, none, escalate`},
		"NoneWith":          {reason: "none has nothing to say.", reply: `{"action":"none","parameters":{"replicas":6},"rationale":""}`, err: `"none" takes no parameters: give {}`},
		"DuplicateArgument": {reason: "The last would win in silence.", reply: `{"action":"scale","parameters":{"replicas":6,"replicas":7},"rationale":""}`, err: `the key parameters: the key "replicas" is given twice`},
		"UnknownArgument":   {reason: "The target is never named.", reply: `{"action":"scale","parameters":{"replicas":6,"deployment":"db"},"rationale":""}`, err: `action scale: unknown parameter "deployment": it takes replicas`},
		"MissingArgument":   {reason: "All are required.", reply: `{"action":"scale","parameters":{},"rationale":""}`, err: `action scale: parameter "replicas" is missing`},
		"NumberAsString":    {reason: "Not converted.", reply: `{"action":"scale","parameters":{"replicas":"6"},"rationale":""}`, err: `action scale: parameter "replicas": must be of type integer, not a string`},
		"IntegerPoint":      {reason: "Integers are plain.", reply: `{"action":"scale","parameters":{"replicas":6.0},"rationale":""}`, err: `action scale: parameter "replicas": must be a plain integer such as 6, not "6.0"`},
		"IntegerExponent":   {reason: "Integers are plain.", reply: `{"action":"scale","parameters":{"replicas":6e0},"rationale":""}`, err: `action scale: parameter "replicas": must be a plain integer such as 6, not "6e0"`},
		"IntegerHuge":       {reason: "2^63.", reply: `{"action":"scale","parameters":{"replicas":9223372036854775808},"rationale":""}`, err: `action scale: parameter "replicas": the integer is too large`},
		"NumberHuge":        {reason: "No infinity.", reply: `{"action":"tune","parameters":{"ratio":1e999,"cache":true,"pool":"large","zone":"b"},"rationale":""}`, err: `action tune: parameter "ratio": the number is too large`},
		"Nested":            {reason: "Values are plain.", reply: `{"action":"scale","parameters":{"replicas":{"a":[[[]]]}},"rationale":""}`, err: `action scale: parameter "replicas": must be of type integer, not an object`},
		"Deep":              {reason: "No stack is spent on it.", reply: `{"action":"scale","parameters":` + strings.Repeat("[", 30000) + strings.Repeat("]", 30000) + `,"rationale":""}`, err: "the reply is no proposal: not exactly one JSON object: invalid character '[' exceeded max depth"},
		"OutOfBounds":       {reason: "Twice the current four.", reply: `{"action":"scale","parameters":{"replicas":9},"rationale":""}`, err: `action scale: parameter "replicas": 9 is above the maximum 8 (2 times 4)`},
		"NotInState":        {reason: "Only what the world offers.", reply: `{"action":"rollback-flag","parameters":{"version":"v1"},"rationale":""}`, err: `action rollback-flag: parameter "version": "v1" is none of the permitted values: v41, v40`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := propose.Parse([]byte(tc.reply), catalogue())
			if diff := cmp.Diff(tc.err, text(err)); diff != "" {
				t.Errorf("%s\nParse(…): -want error, +got error:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nParse(…): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Minus zero is zero: a program would be handed it as an option.
func TestParseMinusZero(t *testing.T) {
	t.Parallel()
	for _, zero := range []string{"-0", "-0.0", "-1e-400"} {
		p, err := propose.Parse([]byte(`{"action":"tune","parameters":{"ratio":`+zero+`,"cache":true,"pool":"large","zone":"b7"},"rationale":""}`), catalogue())
		if f, ok := p.Parameters["ratio"].(float64); err != nil || !ok || f != 0 || math.Signbit(f) {
			t.Errorf("Parse(%s): %v, %v", zero, p.Parameters, err)
		}
	}
}
