package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/propose/openai"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/prompts"
)

// A limit holds however many ask at once: they do so before the first answer.
func TestModelLimitsHoldForManyAtOnce(t *testing.T) {
	const limit, services = 10, 100
	var n atomic.Int64
	all := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n.Add(1)
		<-all // nobody is answered before everybody has asked
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer s.Close()
	tpl, err := propose.LoadPrompts(prompts.FS)
	if err != nil {
		t.Fatal(err)
	}
	c, err := openai.New(openai.Options{Reply: "json_schema", Prompts: tpl, Endpoints: []openai.Endpoint{{Name: "main", BaseURL: s.URL + "/v1", Model: "m", Timeout: 5 * time.Second}}})
	if err != nil {
		t.Fatal(err)
	}
	m := &model{client: c, limits: config.ProposerLimits{CallsPerHour: limit}}
	var wg sync.WaitGroup
	var refused atomic.Int64
	now := time.Now()
	for i := range services {
		wg.Go(func() {
			got := m.Propose(t.Context(), propose.Request{Service: spec.Service{Name: fmt.Sprint("s", i)}, Now: now})
			if strings.Contains(got.Proposal.Fault, "callsPerHour") && refused.Add(1) == services-limit {
				close(all)
			}
		})
	}
	wg.Wait()
	if n.Load() != limit {
		t.Errorf("%d calls of %d services at once, the limit is %d", n.Load(), services, limit)
	}
	if why := m.spent("other", now); why == "" {
		t.Error("after them the limit is not reached")
	}
}
