package execute

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/measure"
)

// MaxRevisions is how many revisions a status answer may list.
const MaxRevisions = 20

// Deployed is what a revision says was done.
const Deployed = "deploy"

// revisionsOf reads the list [{"version", "time"}] of a status answer. It is read
// as a whole or not at all, and says why not: half a list would say that what is
// left out never happened. Whatever it holds, the rest of the answer stands.
func revisionsOf(raw json.RawMessage) (out []measure.Change, why string) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, ""
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return nil, "want a list"
	}
	if len(list) > MaxRevisions {
		return nil, fmt.Sprintf("%d of them, want %d at most", len(list), MaxRevisions)
	}
	for i, item := range list {
		c, err := revision(item)
		if err != nil {
			return nil, fmt.Sprintf("revision %d: %s", i, err)
		}
		out = append(out, c)
	}
	slices.SortFunc(out, measure.Change.Newest)
	return out, ""
}

func revision(raw json.RawMessage) (measure.Change, error) {
	fields, err := object(raw)
	if err != nil {
		return measure.Change{}, err
	}
	c := measure.Change{What: Deployed}
	for key, value := range fields {
		var text *string
		if json.Unmarshal(value, &text) != nil || text == nil {
			return measure.Change{}, errors.New("version and time are texts")
		}
		switch key {
		case "version":
			c.Version = *text
		case "time":
			if c.At, err = time.Parse(time.RFC3339, *text); err != nil {
				return measure.Change{}, errors.New("time is no RFC 3339 time")
			}
			c.At = c.At.UTC()
		default:
			return measure.Change{}, errors.New("a key is neither version nor time")
		}
	}
	if c.Version == "" {
		return measure.Change{}, errors.New("version is missing")
	}
	named := c
	named.Service = "any" // The caller knows which.
	return c, named.Check()
}
