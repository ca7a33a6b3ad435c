package fakeslack

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// block is one block as it was posted, with the ids that Slack adds.
type block = map[string]any

// message is what a channel holds, with how it looked before.
type message struct {
	ts, thread, user string
	// versions are how it looked, the present one last.
	versions []version
	deleted  bool
	unfurl   map[string]string
}

type version struct {
	text   string
	blocks []block
}

func (m *message) present() version { return m.versions[len(m.versions)-1] }

func (m *message) erase() {
	if !m.deleted {
		m.deleted = true
		m.versions = append(m.versions, version{})
	}
}

// Button is one that can be clicked.
type Button struct {
	Block  string `json:"block"`
	Action string `json:"action"`
	Value  string `json:"value"`
	Text   string `json:"text"`
	Style  string `json:"style,omitempty"`
	// Confirm: Slack asks first.
	Confirm bool `json:"confirm,omitempty"`
}

// Message is one message as people see it.
type Message struct {
	Channel string `json:"channel"`
	TS      string `json:"ts"`
	// Thread is the ts of the message that it replies to; "" for none.
	Thread string `json:"thread,omitempty"`
	User   string `json:"user"`
	Text   string `json:"text"`
	// Blocks are as Slack gives them: each has its block_id.
	Blocks  json.RawMessage `json:"blocks,omitempty"`
	Buttons []Button        `json:"buttons"`
	// Edits counts updates.
	Edits   int  `json:"edits"`
	Deleted bool `json:"deleted"`
	// Unfurl is what the post said of unfurling: unfurl_links, unfurl_media.
	Unfurl  map[string]string `json:"unfurl,omitempty"`
	Replies []Message         `json:"replies,omitempty"`
}

// Shown is all text of the message that a person reads, a line for each piece.
func (m Message) Shown() string {
	var blocks []block
	if len(m.Blocks) == 0 || json.Unmarshal(m.Blocks, &blocks) != nil {
		return m.Text
	}
	var lines []string
	for _, b := range blocks {
		lines = append(lines, texts(b)...)
	}
	return strings.Join(lines, "\n")
}

// texts are the values of all text fields below, in the order of the fields that
// people read.
func texts(v any) []string {
	var found []string
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			found = append(found, texts(e)...)
		}
	case map[string]any:
		if s, ok := v["text"].(string); ok {
			found = append(found, s)
		}
		for _, field := range []string{"title", "text", "fields", "elements", "accessory"} {
			found = append(found, texts(v[field])...)
		}
	}
	return found
}

// Ephemeral is a message that one person sees.
type Ephemeral struct {
	TS     string          `json:"ts"`
	User   string          `json:"user"`
	Thread string          `json:"thread,omitempty"`
	Text   string          `json:"text"`
	Blocks json.RawMessage `json:"blocks,omitempty"`
}

// Messages are the channel's, oldest first, each with its replies. Deleted ones
// are among them.
func (s *Slack) Messages(channelID string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[channelID]
	if c == nil {
		return nil
	}
	var messages []Message
	at := map[string]int{}
	for _, m := range c.messages {
		seen := m.shown(channelID)
		if parent, ok := at[m.thread]; ok {
			messages[parent].Replies = append(messages[parent].Replies, seen)
			continue
		}
		at[m.ts] = len(messages)
		messages = append(messages, seen)
	}
	return messages
}

// Ephemerals are what single people were told in the channel, oldest first.
func (s *Slack) Ephemerals(channelID string) []Ephemeral {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.channels[channelID]; c != nil {
		return slices.Clone(c.ephemerals)
	}
	return nil
}

func (m *message) shown(channelID string) Message {
	now := m.present()
	seen := Message{
		Channel: channelID, TS: m.ts, Thread: m.thread, User: m.user, Text: now.text, Deleted: m.deleted,
		Blocks: encoded(now.blocks), Buttons: buttons(now.blocks), Unfurl: m.unfurl, Edits: len(m.versions) - 1,
	}
	if m.deleted {
		seen.Edits--
	}
	return seen
}

func encoded(blocks []block) json.RawMessage {
	if len(blocks) == 0 {
		return nil
	}
	// It was decoded from JSON, so it can be encoded.
	data, _ := json.Marshal(blocks)
	return data
}

// buttons are those of actions blocks and of accessories.
func buttons(blocks []block) []Button {
	found := []Button{}
	for _, b := range blocks {
		for _, e := range elements(b) {
			if e["type"] != "button" {
				continue
			}
			_, confirm := e["confirm"]
			label, _ := e["text"].(map[string]any)
			found = append(found, Button{
				Block: word(b["block_id"]), Action: word(e["action_id"]), Value: word(e["value"]),
				Text: word(label["text"]), Style: word(e["style"]), Confirm: confirm,
			})
		}
	}
	return found
}

// elements are what of a block can be clicked.
func elements(b block) []map[string]any {
	var found []map[string]any
	if b["type"] == "actions" {
		list, _ := b["elements"].([]any)
		for _, e := range list {
			if e, ok := e.(map[string]any); ok {
				found = append(found, e)
			}
		}
	}
	if e, ok := b["accessory"].(map[string]any); ok {
		found = append(found, e)
	}
	return found
}

func word(v any) string {
	s, _ := v.(string)
	return s
}

// wire is the message in Slack's JSON.
func (m *message) wire(s *Slack) map[string]any {
	return m.wireOf(s, m.present())
}

func (m *message) wireOf(s *Slack, v version) map[string]any {
	w := map[string]any{
		"type": "message", "ts": m.ts, "user": m.user, "text": v.text, "team": s.o.Team, "app_id": s.o.App,
		"bot_id": "B0000BOT00", "blocks": v.blocks,
	}
	if v.blocks == nil {
		delete(w, "blocks")
	}
	if m.thread != "" {
		w["thread_ts"], w["parent_user_id"] = m.thread, Bot
	}
	if len(m.versions) > 1 {
		w["edited"] = map[string]any{"user": m.user, "ts": m.ts}
	}
	return w
}

// find gives the message, or nil. The caller holds the lock.
func (s *Slack) find(channelID, ts string) *message {
	c := s.channels[channelID]
	if c == nil {
		return nil
	}
	i := slices.IndexFunc(c.messages, func(m *message) bool { return m.ts == ts })
	if i < 0 {
		return nil
	}
	return c.messages[i]
}

// Holds gives the newest message that is about the ticket: one whose button or
// block names it.
func (s *Slack) Holds(ticket string) (Message, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var newest Message
	for id, c := range s.channels {
		for _, m := range c.messages {
			about := slices.ContainsFunc(m.versions, func(v version) bool { return v.about(ticket) })
			if about && m.ts > newest.TS {
				newest = m.shown(id)
			}
		}
	}
	return newest, newest.TS != ""
}

func (v version) about(ticket string) bool {
	for _, b := range v.blocks {
		if slices.Contains(strings.Split(word(b["block_id"]), "/"), ticket) {
			return true
		}
	}
	return slices.ContainsFunc(buttons(v.blocks), func(b Button) bool {
		first, _, _ := strings.Cut(b.Value, " ")
		return first == ticket
	})
}

// stamp is a timestamp that no other message has. The caller holds the lock.
func (s *Slack) stamp() string {
	s.clock = max(s.o.Now().UnixMicro(), s.clock+1)
	return fmt.Sprintf("%d.%06d", s.clock/1e6, s.clock%1e6)
}

// id is one that nothing else has. The caller holds the lock.
func (s *Slack) id(prefix string) string {
	s.ids++
	return fmt.Sprintf("%s%06d", prefix, s.ids)
}
