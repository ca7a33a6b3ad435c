package prom

import (
	"net/http"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/util/annotations"
)

// version is the server's version that the library in go.mod belongs to:
// v0.316.0 is of 3.16.0.
const version = "3.16.0"

// flags are those of a server's flags that bear on what a client may ask.
func (e *Engine) flags(*http.Request) (any, annotations.Annotations, *fault) {
	return map[string]string{
		"storage.tsdb.retention.time": model.Duration(e.opts.Retention).String(),
		"storage.tsdb.retention.size": "0B",
		"query.lookback-delta":        model.Duration(lookbackDelta).String(),
		"query.max-concurrency":       "20",
		"query.max-samples":           strconv.Itoa(e.opts.MaxSamples),
		"query.timeout":               model.Duration(queryTimeout).String(),
	}, nil, nil
}

// runtimeInfo is what a server says of its process. Only what a client reads
// is real.
type runtimeInfo struct {
	StartTime           time.Time `json:"startTime"`
	CWD                 string    `json:"CWD"`
	Hostname            string    `json:"hostname"`
	ServerTime          time.Time `json:"serverTime"`
	ReloadConfigSuccess bool      `json:"reloadConfigSuccess"`
	LastConfigTime      time.Time `json:"lastConfigTime"`
	CorruptionCount     int64     `json:"corruptionCount"`
	GoroutineCount      int       `json:"goroutineCount"`
	GOMAXPROCS          int       `json:"GOMAXPROCS"`
	GOMEMLIMIT          int64     `json:"GOMEMLIMIT"`
	GOGC                string    `json:"GOGC"`
	GODEBUG             string    `json:"GODEBUG"`
	StorageRetention    string    `json:"storageRetention"`
}

func (e *Engine) runtimeInfo(*http.Request) (any, annotations.Annotations, *fault) {
	return runtimeInfo{
		StartTime: e.start.UTC(), CWD: "/", Hostname: "lab", ServerTime: e.opts.Now().UTC(),
		ReloadConfigSuccess: true, LastConfigTime: e.start.UTC(),
		GoroutineCount: runtime.NumGoroutine(), GOMAXPROCS: runtime.GOMAXPROCS(0),
		GOMEMLIMIT: debug.SetMemoryLimit(-1), StorageRetention: model.Duration(e.opts.Retention).String(),
	}, nil, nil
}

func (e *Engine) buildInfo(*http.Request) (any, annotations.Annotations, *fault) {
	return map[string]string{
		"version": version, "revision": "", "branch": "", "buildUser": "lab", "buildDate": "",
		"goVersion": runtime.Version(),
	}, nil, nil
}
