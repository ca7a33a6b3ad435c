package fakeslack

import (
	"net/url"
	"strings"
	"unicode/utf8"
)

// writable gives the channel if the app may write there. An archived one is
// refused with its own word, which differs between posting and changing.
func (s *Slack) writable(id, archived string) (*channel, *refusal) {
	c := s.channels[id]
	switch {
	case c == nil, c.Private && c.Out:
		// Slack does not admit that a private channel exists.
		return nil, refuse("channel_not_found")
	case c.Archived:
		return nil, refuse(archived)
	case c.Out:
		return nil, refuse("not_in_channel")
	}
	return c, nil
}

// content reads text and blocks.
func (s *Slack) content(v url.Values, longest int) (content version, no *refusal) {
	raw := v.Get("blocks")
	content.text = v.Get("text")
	if raw != "" {
		if content.blocks, no = parseBlocks(raw); no != nil {
			return version{}, no
		}
		s.nameBlocks(content.blocks)
	}
	switch {
	case content.text == "" && len(content.blocks) == 0 && v.Get("attachments") == "":
		return version{}, refuse("no_text")
	case utf8.RuneCountInString(content.text) > longest:
		return version{}, refuse("msg_too_long")
	}
	return content, nil
}

// nameBlocks gives ids to what has none, as Slack does.
func (s *Slack) nameBlocks(blocks []block) {
	for _, b := range blocks {
		if word(b["block_id"]) == "" {
			b["block_id"] = s.id("b")
		}
		for _, e := range elements(b) {
			if word(e["action_id"]) == "" {
				e["action_id"] = s.id("a")
			}
		}
	}
}

// The longest texts: Slack cuts a post beyond its limit and refuses an update.
const (
	longestPost   = 40000
	longestUpdate = 4000
)

func (s *Slack) postMessage(v url.Values) (map[string]any, *refusal) {
	c, no := s.writable(v.Get("channel"), "is_archived")
	if no != nil {
		return nil, no
	}
	if text := []rune(v.Get("text")); len(text) > longestPost {
		v.Set("text", string(text[:longestPost]))
	}
	content, no := s.content(v, longestPost)
	if no != nil {
		return nil, no
	}
	thread := v.Get("thread_ts")
	if thread != "" {
		parent := s.find(c.ID, thread)
		if parent == nil {
			return nil, refuse("thread_not_found")
		}
		if parent.thread != "" {
			thread = parent.thread
		}
	}
	m := &message{ts: s.stamp(), thread: thread, user: Bot, versions: []version{content}, unfurl: unfurl(v)}
	c.messages = append(c.messages, m)
	return map[string]any{"channel": c.ID, "ts": m.ts, "message": m.wire(s)}, nil
}

func unfurl(v url.Values) map[string]string {
	said := map[string]string{}
	for _, flag := range []string{"unfurl_links", "unfurl_media"} {
		if v.Has(flag) {
			said[flag] = v.Get(flag)
		}
	}
	if len(said) == 0 {
		return nil
	}
	return said
}

// update: text without blocks takes the blocks away; neither is no_text.
func (s *Slack) update(v url.Values) (map[string]any, *refusal) {
	c, no := s.writable(v.Get("channel"), "is_inactive")
	if no != nil {
		return nil, no
	}
	m := s.find(c.ID, v.Get("ts"))
	switch {
	case m == nil, m.deleted:
		return nil, refuse("message_not_found")
	case m.user != Bot:
		return nil, refuse("cant_update_message")
	}
	content, no := s.content(v, longestUpdate)
	if no != nil {
		return nil, no
	}
	m.versions = append(m.versions, content)
	return map[string]any{"channel": c.ID, "ts": m.ts, "text": content.text, "message": m.wire(s)}, nil
}

func (s *Slack) remove(v url.Values) (map[string]any, *refusal) {
	c, no := s.writable(v.Get("channel"), "is_inactive")
	if no != nil {
		return nil, no
	}
	m := s.find(c.ID, v.Get("ts"))
	switch {
	case m == nil, m.deleted:
		return nil, refuse("message_not_found")
	case m.user != Bot:
		return nil, refuse("cant_delete_message")
	}
	m.erase()
	return map[string]any{"channel": c.ID, "ts": m.ts}, nil
}

func (s *Slack) postEphemeral(v url.Values) (map[string]any, *refusal) {
	c, no := s.writable(v.Get("channel"), "is_archived")
	if no != nil {
		return nil, no
	}
	if _, known := s.people[v.Get("user")]; !known {
		return nil, refuse("user_not_in_channel")
	}
	content, no := s.content(v, longestPost)
	if no != nil {
		return nil, no
	}
	e := Ephemeral{
		TS: s.stamp(), User: v.Get("user"), Thread: v.Get("thread_ts"), Text: content.text, Blocks: encoded(content.blocks),
	}
	c.ephemerals = append(c.ephemerals, e)
	return map[string]any{"message_ts": e.TS}, nil
}

func (s *Slack) permalink(v url.Values) (map[string]any, *refusal) {
	c := s.channels[v.Get("channel")]
	if c == nil {
		return nil, refuse("channel_not_found")
	}
	m := s.find(c.ID, v.Get("message_ts"))
	if m == nil || m.deleted {
		return nil, refuse("message_not_found")
	}
	link := "https://" + s.o.Domain + ".slack.com/archives/" + c.ID + "/p" + strings.ReplaceAll(m.ts, ".", "")
	return map[string]any{"channel": c.ID, "permalink": link}, nil
}

// Say posts a message of a person, e.g. one that the app must not change.
func (s *Slack) Say(user, channelID, text string) (ts string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[channelID]
	if c == nil {
		return "", false
	}
	m := &message{ts: s.stamp(), user: user, versions: []version{{text: text}}}
	c.messages = append(c.messages, m)
	return m.ts, true
}
