package fakeslack

import (
	"cmp"
	"encoding/base64"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// readable gives the channel if the app may read it: archived ones too.
func (s *Slack) readable(id string) (*channel, *refusal) {
	c := s.channels[id]
	switch {
	case c == nil, c.Private && c.Out:
		return nil, refuse("channel_not_found")
	case c.Out:
		return nil, refuse("not_in_channel")
	}
	return c, nil
}

// history gives what is not in a thread, newest first.
func (s *Slack) history(v url.Values) (map[string]any, *refusal) {
	c, no := s.readable(v.Get("channel"))
	if no != nil {
		return nil, no
	}
	var found []*message
	for _, m := range slices.Backward(c.messages) {
		if m.thread == "" && (!m.deleted || c.replies(m.ts) > 0) && between(m.ts, v) {
			found = append(found, m)
		}
	}
	return s.page(c, found, v)
}

// replies gives the parent first, then its replies, oldest first.
func (s *Slack) replies(v url.Values) (map[string]any, *refusal) {
	c, no := s.readable(v.Get("channel"))
	if no != nil {
		return nil, no
	}
	parent := s.find(c.ID, v.Get("ts"))
	if parent == nil || parent.deleted && c.replies(parent.ts) == 0 {
		return nil, refuse("thread_not_found")
	}
	found := []*message{parent}
	for _, m := range c.messages {
		if m.thread == parent.ts && !m.deleted && between(m.ts, v) {
			found = append(found, m)
		}
	}
	return s.page(c, found, v)
}

// replies counts those of a message.
func (c *channel) replies(ts string) int {
	n := 0
	for _, m := range c.messages {
		if m.thread == ts && !m.deleted {
			n++
		}
	}
	return n
}

// between honours oldest and latest, which stand outside unless inclusive says
// otherwise.
func between(ts string, v url.Values) bool {
	inclusive := v.Get("inclusive") == "1" || v.Get("inclusive") == "true"
	if oldest := v.Get("oldest"); oldest != "" && oldest != "0" {
		if n := compareTS(ts, oldest); n < 0 || n == 0 && !inclusive {
			return false
		}
	}
	if latest := v.Get("latest"); latest != "" {
		if n := compareTS(ts, latest); n > 0 || n == 0 && !inclusive {
			return false
		}
	}
	return true
}

// compareTS compares timestamps as numbers: "9.5" is before "10".
func compareTS(a, b string) int {
	as, af, _ := strings.Cut(a, ".")
	bs, bf, _ := strings.Cut(b, ".")
	an, _ := strconv.ParseInt(as, 10, 64)
	bn, _ := strconv.ParseInt(bs, 10, 64)
	pad := func(f string) string { return (f + "000000")[:max(6, len(f))] }
	return cmp.Or(cmp.Compare(an, bn), cmp.Compare(pad(af), pad(bf)))
}

// page cuts what was found, from the cursor on.
func (s *Slack) page(c *channel, found []*message, v url.Values) (map[string]any, *refusal) {
	limit, err := strconv.Atoi(cmp.Or(v.Get("limit"), "100"))
	if err != nil || limit < 1 || limit > 999 {
		return nil, refuse("invalid_limit")
	}
	if cursor := v.Get("cursor"); cursor != "" {
		from, err := base64.StdEncoding.DecodeString(cursor)
		ts, ok := strings.CutPrefix(string(from), "next_ts:")
		i := slices.IndexFunc(found, func(m *message) bool { return m.ts == ts })
		if err != nil || !ok || i < 0 {
			return nil, refuse("invalid_cursor")
		}
		found = found[i:]
	}
	answer := map[string]any{"has_more": len(found) > limit, "pin_count": 0}
	if len(found) > limit {
		next := base64.StdEncoding.EncodeToString([]byte("next_ts:" + found[limit].ts))
		answer["response_metadata"] = map[string]any{"next_cursor": next}
		found = found[:limit]
	}
	messages := []map[string]any{}
	for _, m := range found {
		messages = append(messages, s.listed(c, m))
	}
	answer["messages"] = messages
	return answer, nil
}

// listed is a message in a list: one with replies says so, and of a deleted one
// that has some only its stone is left.
func (s *Slack) listed(c *channel, m *message) map[string]any {
	w := m.wire(s)
	if m.deleted {
		w = map[string]any{
			"type": "message", "subtype": "tombstone", "hidden": true, "ts": m.ts, "user": "USLACKBOT",
			"text": "This message was deleted.",
		}
	}
	if n := c.replies(m.ts); n > 0 {
		w["thread_ts"], w["reply_count"] = m.ts, n
	}
	return w
}

func (s *Slack) info(v url.Values) (map[string]any, *refusal) {
	c := s.channels[v.Get("channel")]
	if c == nil || c.Private && c.Out {
		return nil, refuse("channel_not_found")
	}
	return map[string]any{"channel": map[string]any{
		"id": c.ID, "name": c.Name, "is_channel": !c.Private, "is_group": c.Private, "is_private": c.Private,
		"is_archived": c.Archived, "is_member": !c.Out, "created": 1,
	}}, nil
}
