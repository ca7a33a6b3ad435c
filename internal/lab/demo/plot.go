package demo

import (
	"time"

	"github.com/setpoint-dev/setpoint/internal/lab/shop"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// scene is one fault and when it begins.
type scene struct {
	service string
	fault   shop.Fault
	// after is the time from the first fault.
	after time.Duration
	// story says in one line what a person watching is about to see.
	story string
	// tells is the error ratio over a window, asked in other words than slo/
	// does: rate instead of increase, and bad events where the document counts
	// good ones, or the other way round. %s is the window.
	tells string
}

// plot is the order of the faults. They overlap, and are far enough apart that
// a person can follow.
var plot = []scene{
	{
		service: shop.Checkout, fault: shop.BadRelease,
		story: "release v42 of checkout fails most requests",
		tells: `(sum(rate(shop_http_requests_total{service="checkout",code=~"5.."}[%[1]s])) or vector(0)) / sum(rate(shop_http_requests_total{service="checkout"}[%[1]s]))`,
	},
	{
		service: shop.Fulfilment, fault: shop.PoisonedWorkers, after: 8 * time.Second,
		story: "two shards of fulfilment's workers are poisoned; one recycling mends one shard",
		tells: `1 - sum(rate(shop_jobs_total{service="fulfilment",result!="failed"}[%[1]s])) / sum(rate(shop_jobs_total{service="fulfilment"}[%[1]s]))`,
	},
	{
		service: shop.Catalog, fault: shop.DeadExporter, after: 16 * time.Second,
		story: "catalog's exporter dies; catalog itself is fine, but nobody can know",
		tells: `(sum(rate(shop_http_requests_total{service="catalog",code=~"5.."}[%[1]s])) or vector(0)) / sum(rate(shop_http_requests_total{service="catalog"}[%[1]s]))`,
	},
}

// How the documents are cut, and how the agent is limited. A person must be
// able to wait for all of it.
const (
	// factor divides every duration of slo/ but approvalFor and permitTTL.
	factor = 30
	scrape = time.Second
	// warmup is the traffic before the agent starts, so that its first look
	// finds a judge window.
	warmup = 12 * time.Second
	// longest is how long the whole demo may take. Its end takes some seconds.
	longest = 4*time.Minute - 10*time.Second
)

// pagePair is the one pair that pages. The long window is long on purpose: by
// the time it burns, the judge window is bad from end to end, so that "no
// change" is measured against a full window.
var pagePair = spec.BurnRate{Short: 10 * time.Second, Long: 50 * time.Second, Factor: 14.4, Page: true}
