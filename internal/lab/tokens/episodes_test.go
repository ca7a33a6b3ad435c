package tokens_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// exchanged is what a cassette holds of one request and its reply.
type exchanged struct {
	Request struct {
		Messages []struct{ Content string }
		Format   struct {
			Schema struct{ Schema json.RawMessage } `json:"json_schema"`
		} `json:"response_format"`
	}
	Reply string
}

// TestEpisodes is B11 of whole episodes, as they were played: all questions of
// the one episode of a shipped scenario, with their answers, by the tokenizer and
// by the usage that the endpoint gave at run time.
func TestEpisodes(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(root + "evals/cassettes/*.jsonl")
	if err != nil || len(files) < 2 {
		t.Fatalf("%d cassettes: %v", len(files), err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		questions, counted, usage := 0, 0, 0
		for _, line := range bytes.Split(bytes.TrimSpace(data), []byte("\n"))[1:] {
			is, told := tokensOf(t, line)
			questions, counted, usage = questions+1, counted+is, usage+told
		}
		t.Logf("%s: %d questions, %d tokens by the tokenizer, %d by the endpoint", filepath.Base(name), questions, counted, usage)
		if questions == 0 || counted > most || usage > most {
			t.Errorf("%s: want 1 to %d tokens an episode", filepath.Base(name), most)
		}
	}
}

// tokensOf counts one exchange, by the tokenizer and by the endpoint.
func tokensOf(t *testing.T, line []byte) (counted, usage int) {
	t.Helper()
	var x exchanged
	var reply struct {
		Choices []struct{ Message struct{ Content string } }
		Usage   struct {
			Total int `json:"total_tokens"`
		}
	}
	if err := json.Unmarshal(line, &x); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(x.Reply), &reply); err != nil || len(reply.Choices) != 1 {
		t.Fatalf("no reply: %v", err)
	}
	texts := []string{string(x.Request.Format.Schema.Schema), reply.Choices[0].Message.Content}
	for _, m := range x.Request.Messages {
		texts = append(texts, m.Content)
	}
	if len(texts) != 4 || len(texts[0]) < 100 {
		t.Fatalf("the cassette holds no question with its schema: %d texts", len(texts))
	}
	return count(t, texts...), reply.Usage.Total
}
