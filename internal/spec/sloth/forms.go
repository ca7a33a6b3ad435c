package sloth

import "github.com/setpoint-dev/setpoint/internal/spec"

// keys are the words that the two forms spell differently, with the path to
// the keys that they share.
type keys struct {
	root                                             string
	plugins, errorQuery, totalQuery, errorRatioQuery string
}

var (
	fileKeys = keys{
		plugins: "slo_plugins", errorQuery: "error_query", totalQuery: "total_query", errorRatioQuery: "error_ratio_query",
	}
	resourceKeys = keys{
		root: "spec.", plugins: "sloPlugins", errorQuery: "errorQuery", totalQuery: "totalQuery", errorRatioQuery: "errorRatioQuery",
	}
)

// level is a document of either form: the SLOs of one service.
type level struct {
	service string
	labels  labels
	plugins *chain
	slos    []slo
}

// slo is one SLO of either form.
type slo struct {
	common
	sli      sli
	alerting alerting
}

// common is what both forms spell alike.
type common struct {
	Name        string        `yaml:"name,required"`
	Description string        `yaml:"description"`
	Objective   *float64      `yaml:"objective,required"`
	Plugins     *chain        `yaml:"plugins"`
	Labels      labels        `yaml:"labels"`
	Pos         spec.Position `yaml:",pos"`
}

// labels may be numbers and words such as true, as Sloth's files have them.
type labels map[string]spec.Value

// chain is a list of plugins that change the rules which Sloth writes.
type chain struct {
	OverridePrevious bool `yaml:"overridePrevious"`
	Chain            []struct {
		ID       string     `yaml:"id,required"`
		Config   spec.Value `yaml:"config"`
		Priority int        `yaml:"priority"`
	} `yaml:"chain,required"`
}

// plugin is a program that makes the SLI.
type plugin struct {
	ID      string     `yaml:"id,required"`
	Options spec.Value `yaml:"options"`
}

type alert struct {
	Disable     bool   `yaml:"disable"`
	Labels      labels `yaml:"labels"`
	Annotations labels `yaml:"annotations"`
}

// sli and alerting have no tags of their own: Go converts the forms below to
// them, because only the tags differ.
type sli struct {
	Raw    *struct{ ErrorRatioQuery string }
	Events *struct{ ErrorQuery, TotalQuery string }
	Plugin *plugin
}

type alerting struct {
	Name                   string
	Labels, Annotations    labels
	PageAlert, TicketAlert alert
}

// fileDoc is one of Sloth's own files.
type fileDoc struct {
	Version string    `yaml:"version,required"`
	Service string    `yaml:"service,required"`
	Labels  labels    `yaml:"labels"`
	Plugins *chain    `yaml:"slo_plugins"`
	SLOs    []fileSLO `yaml:"slos,required"`
}

type fileSLO struct {
	Common   common       `yaml:",inline"`
	SLI      fileSLI      `yaml:"sli,required"`
	Alerting fileAlerting `yaml:"alerting"`
}

type fileSLI struct {
	Raw *struct {
		ErrorRatioQuery string `yaml:"error_ratio_query,required"`
	} `yaml:"raw"`
	Events *struct {
		ErrorQuery string `yaml:"error_query,required"`
		TotalQuery string `yaml:"total_query,required"`
	} `yaml:"events"`
	Plugin *plugin `yaml:"plugin"`
}

type fileAlerting struct {
	Name        string `yaml:"name"`
	Labels      labels `yaml:"labels"`
	Annotations labels `yaml:"annotations"`
	PageAlert   alert  `yaml:"page_alert"`
	TicketAlert alert  `yaml:"ticket_alert"`
}

func (d fileDoc) level() level {
	l := level{service: d.Service, labels: d.Labels, plugins: d.Plugins}
	for _, s := range d.SLOs {
		l.slos = append(l.slos, slo{common: s.Common, sli: sli(s.SLI), alerting: alerting(s.Alerting)})
	}
	return l
}

const resourceKind = "PrometheusServiceLevel"

// resourceDoc is Sloth's Kubernetes resource.
type resourceDoc struct {
	APIVersion string          `yaml:"apiVersion"`
	Kind       string          `yaml:"kind"`
	Metadata   spec.ObjectMeta `yaml:"metadata,required"`
	Spec       resource        `yaml:"spec,required"`
	Status     spec.Value      `yaml:"status"`
}

type resource struct {
	Service string        `yaml:"service,required"`
	Labels  labels        `yaml:"labels"`
	Plugins *chain        `yaml:"sloPlugins"`
	SLOs    []resourceSLO `yaml:"slos,required"`
}

type resourceSLO struct {
	Common   common           `yaml:",inline"`
	SLI      resourceSLI      `yaml:"sli,required"`
	Alerting resourceAlerting `yaml:"alerting"`
}

type resourceSLI struct {
	Raw *struct {
		ErrorRatioQuery string `yaml:"errorRatioQuery,required"`
	} `yaml:"raw"`
	Events *struct {
		ErrorQuery string `yaml:"errorQuery,required"`
		TotalQuery string `yaml:"totalQuery,required"`
	} `yaml:"events"`
	Plugin *plugin `yaml:"plugin"`
}

type resourceAlerting struct {
	Name        string `yaml:"name"`
	Labels      labels `yaml:"labels"`
	Annotations labels `yaml:"annotations"`
	PageAlert   alert  `yaml:"pageAlert"`
	TicketAlert alert  `yaml:"ticketAlert"`
}

func (d resourceDoc) level() level {
	l := level{service: d.Spec.Service, labels: d.Spec.Labels, plugins: d.Spec.Plugins}
	for _, s := range d.Spec.SLOs {
		l.slos = append(l.slos, slo{common: s.Common, sli: sli(s.SLI), alerting: alerting(s.Alerting)})
	}
	return l
}
