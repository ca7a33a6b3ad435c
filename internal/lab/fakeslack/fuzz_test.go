package fakeslack_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/setpoint-dev/setpoint/internal/lab/fakeslack"
)

// FuzzBlocks: whatever the blocks are, the answer is Slack's JSON; what is taken
// can be read again, and each block has an id.
func FuzzBlocks(f *testing.F) {
	f.Add(`[{"type":"section","text":{"type":"mrkdwn","text":"x"},"accessory":{"type":"button","text":{"type":"plain_text","text":"Go"},"value":"v"}}]`)
	f.Add(`[{"type":"actions","block_id":"b","elements":[{"type":"button","action_id":"a","text":{"type":"plain_text","text":"Go"}}]}]`)
	f.Add(`[null]`)
	f.Add(`[{"type":"context","elements":[1]}]`)
	f.Add(`[{"type":"section","fields":{},"accessory":[]}]`)
	f.Fuzz(func(t *testing.T, blocks string) {
		s := fakeslack.New(fakeslack.Options{})
		form := url.Values{"channel": {ops}, "blocks": {blocks}, "token": {fakeslack.BotToken}}
		req := httptest.NewRequest(http.MethodPost, "/api/chat.postMessage?"+form.Encode(), nil)
		req.Header.Set("Authorization", "Bearer "+fakeslack.BotToken)
		rec := httptest.NewRecorder()
		s.Handler().ServeHTTP(rec, req)
		var said struct {
			OK    *bool  `json:"ok"`
			Error string `json:"error"`
		}
		if err := json.Unmarshal(rec.Body.Bytes(), &said); err != nil || said.OK == nil || *said.OK != (said.Error == "") {
			t.Fatalf("HTTP %d %s, %v", rec.Code, rec.Body, err)
		}
		messages := s.Messages(ops)
		if *said.OK != (len(messages) == 1) {
			t.Fatalf("ok %v with %d messages", *said.OK, len(messages))
		}
		if !*said.OK {
			return
		}
		var kept []struct {
			BlockID string `json:"block_id"`
		}
		if err := json.Unmarshal(messages[0].Blocks, &kept); err != nil {
			t.Fatal(err)
		}
		for i, b := range kept {
			if b.BlockID == "" {
				t.Errorf("block %d has no id", i)
			}
		}
		for _, b := range messages[0].Buttons {
			if b.Action == "" || len([]rune(b.Value)) > 2000 {
				t.Errorf("button %+v", b)
			}
		}
	})
}
