package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/setpoint-dev/setpoint/internal/measure"
)

func TestMain(m *testing.M) {
	testscript.Main(patient{m}, map[string]func(){"setpoint": main})
}

// patient runs more stories at a time than there are processors: a story mostly
// waits for its agent's next sweep. -parallel of the command line wins.
type patient struct{ *testing.M }

func (p patient) Run() int {
	flag.Parse()
	const storiesAtATime = 6
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given && runtime.GOMAXPROCS(0) < storiesAtATime {
		if err := flag.Set("test.parallel", strconv.Itoa(storiesAtATime)); err != nil {
			panic(err)
		}
	}
	return p.M.Run()
}

// TestScript runs the stories in testdata/script, each a whole world. Every
// one has a Prometheus that says what the script tells it to (command prom)
// and an actuator that counts (command effects).
func TestScript(t *testing.T) { stories(t, "testdata/script", nil) }

// stories runs every story of a folder, with further commands if it has any.
func stories(t *testing.T, dir string, more map[string]func(*testscript.TestScript, bool, []string)) {
	commands := map[string]func(*testscript.TestScript, bool, []string){
		"prom": cmdProm, "effects": cmdEffects, "signal": cmdSignal, "eventually": cmdEventually, "expand": cmdExpand, "ask": cmdAsk, "lose-replies": cmdLose,
		"hold": cmdHold, "slack": cmdSlack,
	}
	maps.Copy(commands, more)
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(env *testscript.Env) error {
			w := newWorld()
			env.Defer(w.close)
			env.Values[worldKey{}] = w
			env.Setenv("PROM", w.prom.URL)
			env.Setenv("ACTUATOR", w.actuator.URL)
			env.Setenv("NO_COLOR", "1")
			root, err := filepath.Abs("../..")
			if err != nil {
				return err
			}
			env.Setenv("ROOT", root)
			return nil
		},
		Cmds: commands,
	})
}

type worldKey struct{}

// world is what surrounds the agent in a script.
type world struct {
	prom, actuator *httptest.Server
	// slack is nil until a story starts it.
	slack *scriptSlack

	mu      sync.Mutex
	ratio   float64
	age     float64
	mode    string
	lost    bool
	hold    time.Duration
	effects int
}

func newWorld() *world {
	w := &world{age: 1}
	w.prom = httptest.NewServer(http.HandlerFunc(w.query))
	w.actuator = httptest.NewServer(http.HandlerFunc(w.act))
	return w
}

func (w *world) close() {
	w.prom.Close()
	w.actuator.Close()
}

// query answers /api/v1/query: of 1000 events, a share of ratio is bad.
func (w *world) query(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := float64(time.Now().UnixMilli()) / 1000
	if t, err := strconv.ParseFloat(r.FormValue("time"), 64); err == nil {
		at = t
	}
	q := r.FormValue("query")
	rw.Header().Set("Content-Type", "application/json")
	switch {
	case q == "time()":
		_, _ = fmt.Fprintf(rw, `{"status":"success","data":{"resultType":"scalar","result":[%.3f,"%.3f"]}}`, at, at)
		return
	case w.mode == "down":
		rw.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(rw, `{"status":"error","errorType":"unavailable","error":"starting up"}`)
		return
	case w.mode == "empty" || strings.Contains(q, measure.CountTotal):
		_, _ = io.WriteString(rw, `{"status":"success","data":{"resultType":"vector","result":[]}}`)
		return
	}
	value := 1000.0
	switch {
	case strings.Contains(q, "resets("):
		value = 0
	case strings.Contains(q, "timestamp("):
		value = at - w.age
	case strings.Contains(q, "!~"):
		value = 1000 * (1 - w.ratio)
	}
	var series []string
	for _, metric := range metricsOf(q) {
		series = append(series, fmt.Sprintf(`{"metric":%s,"value":[%.3f,"%.3f"]}`, metric, at, value))
	}
	_, _ = fmt.Fprintf(rw, `{"status":"success","data":{"resultType":"vector","result":[%s]}}`, strings.Join(series, ","))
}

// alternatives are those of a query for several services, such as
// sum by (service) (n{service=~"a|b"}).
var alternatives = regexp.MustCompile(`(\w+)=~"(\w+(?:\|\w+)+)"`)

// metricsOf are the labels of the series that answer a query.
func metricsOf(q string) []string {
	found := alternatives.FindStringSubmatch(q)
	if found == nil || !strings.Contains(q, "by ("+found[1]+")") {
		return []string{"{}"}
	}
	var out []string
	for value := range strings.SplitSeq(found[2], "|") {
		out = append(out, fmt.Sprintf("{%q:%q}", found[1], value))
	}
	return out
}

// act is an actuator that does everything at once.
func (w *world) act(rw http.ResponseWriter, r *http.Request) {
	rw.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodGet {
		_, _ = io.WriteString(rw, `{"known":false,"state":{"replicas":3}}`)
		return
	}
	if r.URL.Path == "/page" {
		return
	}
	var body struct {
		Action string `json:"action"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		rw.WriteHeader(http.StatusBadRequest)
		return
	}
	w.mu.Lock()
	w.effects++
	lost, hold := w.lost, w.hold
	w.mu.Unlock()
	time.Sleep(hold)
	if lost {
		panic(http.ErrAbortHandler) // The connection ends without a reply.
	}
	_, _ = io.WriteString(rw, `{"result":"applied"}`)
}

func worldOf(ts *testscript.TestScript) *world {
	return ts.Value(worldKey{}).(*world)
}

// cmdProm: prom ratio 0.3 | prom age 600 | prom down | prom empty | prom up.
func cmdProm(ts *testscript.TestScript, _ bool, args []string) {
	w := worldOf(ts)
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(args) == 1 {
		w.mode = args[0]
		return
	}
	v, err := strconv.ParseFloat(args[1], 64)
	ts.Check(err)
	switch args[0] {
	case "ratio":
		w.ratio = v
	case "age":
		w.age = v
	default:
		ts.Fatalf("prom: unknown %s", args[0])
	}
}

// cmdLose: from now on the actuator acts, and its replies are lost.
func cmdLose(ts *testscript.TestScript, _ bool, _ []string) {
	w := worldOf(ts)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost = true
}

// cmdHold: hold 4s lets the actuator answer that much later.
func cmdHold(ts *testscript.TestScript, _ bool, args []string) {
	d, err := time.ParseDuration(args[0])
	ts.Check(err)
	w := worldOf(ts)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hold = d
}

// cmdEffects: effects 1 asserts how many effects the actuator saw.
func cmdEffects(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	w := worldOf(ts)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.effects != want {
		ts.Fatalf("the actuator saw %d effects, want %d", w.effects, want)
	}
}

// cmdSignal: signal STOP sends a signal to the process that holds the ledger.
func cmdSignal(ts *testscript.TestScript, _ bool, args []string) {
	signals := map[string]syscall.Signal{"STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP}
	pid, err := strconv.Atoi(strings.TrimSpace(ts.ReadFile("setpoint.db.lock")))
	ts.Check(err)
	ts.Check(syscall.Kill(pid, signals[args[0]]))
}

// cmdEventually: eventually <regexp> <command...> repeats a command until its
// output matches.
func cmdEventually(ts *testscript.TestScript, _ bool, args []string) {
	want, err := regexp.Compile(args[0])
	ts.Check(err)
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		cmd := exec.Command(args[1], args[2:]...)
		cmd.Dir = ts.MkAbs(".")
		cmd.Env = append(os.Environ(), "PATH="+ts.Getenv("PATH"), "SETPOINT_CONFIG="+ts.Getenv("SETPOINT_CONFIG"))
		out, _ := cmd.CombinedOutput() // The text is what is waited for.
		if want.Match(out) {
			return
		}
		select {
		case <-deadline:
			ts.Fatalf("%s never matched %s; last output:\n%s", strings.Join(args[1:], " "), args[0], out)
		case <-tick.C:
		}
	}
}

// cmdAsk: ask <path> <regexp> repeats GET over the agent's socket until status
// and body match.
func cmdAsk(ts *testscript.TestScript, _ bool, args []string) {
	want, err := regexp.Compile(args[1])
	ts.Check(err)
	socket := ts.MkAbs("setpoint.sock")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", socket)
	}}}
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	last := ""
	for {
		if resp, err := client.Get("http://setpoint" + args[0]); err == nil {
			body, _ := io.ReadAll(resp.Body) // The text is what is waited for.
			_ = resp.Body.Close()
			if last = resp.Status + " " + string(body); want.MatchString(last) {
				return
			}
		}
		select {
		case <-deadline:
			ts.Fatalf("%s never matched %s; last answer:\n%s", args[0], args[1], last)
		case <-tick.C:
		}
	}
}

// cmdExpand: expand file... replaces $PROM, $ACTUATOR and $ME in files.
func cmdExpand(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		text := strings.NewReplacer("$PROM", ts.Getenv("PROM"), "$ACTUATOR", ts.Getenv("ACTUATOR"), "$ME", actor()).Replace(ts.ReadFile(name))
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o644))
	}
}
