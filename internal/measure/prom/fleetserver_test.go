package prom_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// fleetServer answers for any number of services, 99 good of 100 for each, as a
// server that groups by label does. What a test breaks of it stands in fail.
type fleetServer struct {
	// fail answers in its place where it returns true.
	fail func(w http.ResponseWriter, r *http.Request, members []string) bool
	// sample gives the samples of one member in another way; nil is never.
	sample func(kind, labels, at string) string
	// now is the server's clock; nil is the instant that is asked.
	now func() time.Time

	mu  sync.Mutex
	log []string // what was asked, as "kind × members"
}

var serviceMatcher = regexp.MustCompile(`service=~?"([^"]*)"`)

func (f *fleetServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.FormValue("query")
	members := members(query)
	f.mu.Lock()
	f.log = append(f.log, fmt.Sprintf("%s × %d", kind(query), len(members)))
	fail := f.fail
	f.mu.Unlock()
	if fail != nil && fail(w, r, members) {
		return
	}
	at := r.FormValue("time")
	if query == "time()" {
		at = seconds(time.Now())
		if f.now != nil {
			at = seconds(f.now())
		}
		_, _ = fmt.Fprint(w, success(fmt.Sprintf(`{"resultType":"scalar","result":[%s,%q]}`, at, at)))
		return
	}
	value := map[string]string{"good": "99", "total": "100", "resets": "0", "newest": at, "oldest": at}[kind(query)]
	var samples []string
	for _, m := range members {
		labels := fmt.Sprintf(`{"service":%q}`, m)
		if len(members) == 1 {
			labels = "{}"
		}
		text := fmt.Sprintf(`{"metric":%s,"value":[%s,%q]}`, labels, at, value)
		if f.sample != nil && m == broken {
			text = f.sample(kind(query), labels, at)
		}
		if text != "" {
			samples = append(samples, text)
		}
	}
	_, _ = fmt.Fprint(w, success(`{"resultType":"vector","result":[`+strings.Join(samples, ",")+`]}`))
}

// members are the services that a query asks about.
func members(query string) []string {
	m := serviceMatcher.FindStringSubmatch(query)
	if m == nil {
		return nil
	}
	names := strings.Split(m[1], "|")
	for i, name := range names {
		names[i] = strings.ReplaceAll(name, `\\`, "")
	}
	return names
}

// set breaks or mends the server.
func (f *fleetServer) set(fail func(w http.ResponseWriter, r *http.Request, members []string) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = fail
}

func (f *fleetServer) calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.log)
}

// asked returns what was asked since it was last called, sorted.
func (f *fleetServer) asked() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.log
	f.log = nil
	slices.Sort(out)
	return out
}

// broken is the service that tests break.
const broken = "svc-042"

func serviceName(i int) string { return fmt.Sprintf("svc-%03d", i) }

// member is an objective of one service of a fleet: all have one shape.
func member(service string) spec.Objective {
	sel := fmt.Sprintf("{service=%q}", service)
	return objective(func(o *spec.Objective) {
		o.Indicator.Good = &spec.Query{Expr: "good" + sel, Counter: true}
		o.Indicator.Total = &spec.Query{Expr: "total" + sel, Counter: true}
	})
}

// fleetQueries ask each service's judge window.
func fleetQueries(n int) func(at time.Time) []measure.Query {
	services := make([]spec.Service, n)
	for i := range services {
		services[i] = spec.Service{Name: serviceName(i), Objectives: []spec.Objective{member(serviceName(i))}}
	}
	return judgeQueries(services)
}

// judgeQueries ask the judge windows of services, which are compiled together.
func judgeQueries(services []spec.Service) func(at time.Time) []measure.Query {
	plans := measure.Compile(services, nil)
	return func(at time.Time) []measure.Query {
		var qs []measure.Query
		for _, svc := range services {
			for _, q := range plans.Service(svc.Name).Pass(at) {
				if q.ID.Window == svc.Objectives[0].JudgeWindow && q.ID.At.Equal(at) && !q.ID.TotalOnly {
					qs = append(qs, q)
				}
			}
		}
		return qs
	}
}

// refuse answers with an error of the API.
func refuse(w http.ResponseWriter, status int, errorType, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"status":"error","errorType":%q,"error":%q}`, errorType, text)
}
