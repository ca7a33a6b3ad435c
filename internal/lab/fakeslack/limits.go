package fakeslack

import (
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"
)

// The documented limits of messages, and the one of all blocks together, which
// is known from reports alone.
const (
	maxBlocks     = 50
	maxAllBlocks  = 13200
	maxID         = 255
	maxActions    = 25
	maxContext    = 10
	maxFields     = 10
	maxField      = 2000
	maxSection    = 3000
	maxHeader     = 150
	maxLabel      = 75
	maxValue      = 2000
	maxMarkdown   = 12000
	maxConfirm    = 300
	maxConfirmTop = 100
)

// fault of a block, in Slack's words.
type blockFaults []string

func (f *blockFaults) add(where, format string, args ...any) {
	*f = append(*f, fmt.Sprintf("[ERROR] %s [json-pointer:%s]", fmt.Sprintf(format, args...), where))
}

func parseBlocks(raw string) ([]block, *refusal) {
	var blocks []block
	if err := json.Unmarshal([]byte(raw), &blocks); err != nil || slices.ContainsFunc(blocks, func(b block) bool { return b == nil }) {
		return nil, refuse("invalid_blocks_format")
	}
	var f blockFaults
	if len(blocks) > maxBlocks {
		f.add("/blocks", "no more than %d items allowed", maxBlocks)
	}
	ids := map[string]bool{}
	for i, b := range blocks {
		where := fmt.Sprintf("/blocks/%d", i)
		if id := word(b["block_id"]); id != "" {
			if ids[id] {
				f.add(where+"/block_id", "block_id %q is not unique", id)
			}
			ids[id] = true
		}
		checkBlock(&f, where, b)
	}
	switch {
	case len(f) > 0:
		return nil, &refusal{code: "invalid_blocks", messages: f}
	case utf8.RuneCountInString(raw) > maxAllBlocks:
		return nil, refuse("msg_blocks_too_long")
	}
	return blocks, nil
}

func checkBlock(f *blockFaults, where string, b block) {
	checkLength(f, where+"/block_id", word(b["block_id"]), maxID)
	switch b["type"] {
	case "section":
		checkSection(f, where, b)
	case "header":
		checkText(f, where+"/text", b["text"], maxHeader, true)
	case "context":
		list := items(f, where, b["elements"], maxContext)
		for i, e := range list {
			if e["type"] != "image" {
				checkText(f, fmt.Sprintf("%s/elements/%d", where, i), e, maxSection, false)
			}
		}
	case "actions":
		checkActions(f, where, b)
	case "markdown":
		checkLength(f, where+"/text", word(b["text"]), maxMarkdown)
	case "divider", "image", "rich_text":
	default:
		f.add(where+"/type", "unsupported type: %v", b["type"])
	}
}

func checkSection(f *blockFaults, where string, b block) {
	fields, some := b["fields"]
	if text, ok := b["text"]; ok {
		checkText(f, where+"/text", text, maxSection, false)
	} else if !some {
		f.add(where, "one of text and fields is required")
	}
	if some {
		for i, e := range items(f, where, fields, maxFields) {
			checkText(f, fmt.Sprintf("%s/fields/%d", where, i), e, maxField, false)
		}
	}
	if e, ok := b["accessory"].(map[string]any); ok {
		checkElement(f, where+"/accessory", e)
	}
}

func checkActions(f *blockFaults, where string, b block) {
	ids := map[string]bool{}
	for i, e := range items(f, where, b["elements"], maxActions) {
		at := fmt.Sprintf("%s/elements/%d", where, i)
		if id := word(e["action_id"]); id != "" {
			if ids[id] {
				f.add(at+"/action_id", "action_id %q is not unique in its block", id)
			}
			ids[id] = true
		}
		checkElement(f, at, e)
	}
}

func checkElement(f *blockFaults, where string, e map[string]any) {
	checkLength(f, where+"/action_id", word(e["action_id"]), maxID)
	if e["type"] != "button" {
		return
	}
	checkText(f, where+"/text", e["text"], maxLabel, true)
	checkLength(f, where+"/value", word(e["value"]), maxValue)
	checkLength(f, where+"/url", word(e["url"]), maxSection)
	if style, ok := e["style"]; ok && style != "primary" && style != "danger" {
		f.add(where+"/style", "must be one of primary, danger")
	}
	if confirm, ok := e["confirm"]; ok {
		c, _ := confirm.(map[string]any)
		checkText(f, where+"/confirm/title", c["title"], maxConfirmTop, true)
		checkText(f, where+"/confirm/text", c["text"], maxConfirm, false)
		checkText(f, where+"/confirm/confirm", c["confirm"], 30, true)
		checkText(f, where+"/confirm/deny", c["deny"], 30, true)
	}
}

func items(f *blockFaults, where string, v any, most int) []map[string]any {
	list, _ := v.([]any)
	if len(list) == 0 || len(list) > most {
		f.add(where, "from 1 to %d items are allowed, not %d", most, len(list))
	}
	var found []map[string]any
	for _, e := range list {
		e, ok := e.(map[string]any)
		if !ok {
			f.add(where, "an item is no object")
			continue
		}
		found = append(found, e)
	}
	return found
}

func checkText(f *blockFaults, where string, v any, most int, plain bool) {
	t, ok := v.(map[string]any)
	if !ok {
		f.add(where, "missing required field: text")
		return
	}
	kind := word(t["type"])
	if kind != "plain_text" && (plain || kind != "mrkdwn") {
		f.add(where+"/type", "unsupported type of text: %q", kind)
	}
	if word(t["text"]) == "" {
		f.add(where+"/text", "must be more than 0 characters")
	}
	checkLength(f, where+"/text", word(t["text"]), most)
}

func checkLength(f *blockFaults, where, text string, most int) {
	if utf8.RuneCountInString(text) > most {
		f.add(where, "must be less than %d characters", most+1)
	}
}
