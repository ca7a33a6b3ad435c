package spec

import (
	"cmp"
	"slices"
	"strings"
)

// File is one document file as read by the caller.
type File struct {
	Name string
	Data []byte
}

// Reader reads the SLOs of one format. The children of this package are
// readers; the caller chooses which to pass to Load.
type Reader interface {
	// APIVersion is the format's, e.g. openslo/v1. In a document without an
	// apiVersion it stands at version, e.g. prometheus/v1.
	APIVersion() string
	// Read gets all documents of the format at once, because they refer to one
	// another.
	Read(docs []Document) (Reading, Faults)
}

// Reading is what a Reader found.
type Reading struct {
	// APIVersion is the Reader's; whoever calls it fills it in.
	APIVersion string
	Services   []ServiceReading
	Objectives []ObjectiveReading
	Notes      []Note
	// Unresolved are references to documents that are not among these; in a
	// file that could not be read there may be one.
	Unresolved Faults
}

// ServiceReading is a document that declares a service.
type ServiceReading struct {
	Name   string
	Digest string
	Pos    Position
}

// ObjectiveReading is an objective with the service it belongs to and the
// digests of the documents that define it. A Reader leaves JudgeWindow and
// BurnRates empty.
type ObjectiveReading struct {
	Service   string
	Objective Objective
	Digests   []string
	// ServicePos is where the objective names its service.
	ServicePos Position
	// Labels are those of the SLO. They are for whoever writes it out again:
	// nothing that is measured or decided depends on them.
	Labels map[string]string
}

// Load reads all documents at once and returns everything they say, or Faults
// with all that is wrong and an empty Set. It reads Setpoint's own kinds
// itself and leaves each other apiVersion to its reader. While a file cannot be
// read, nothing is said about what is missing or does not fit: it may be there.
func Load(files []File, readers []Reader) (Set, error) {
	l := newLoader()
	if complete := l.read(files, readers); !complete {
		return Set{}, l.faults.Err()
	}
	for _, r := range l.readings {
		l.add(r.Unresolved...)
	}
	set := l.assemble()
	if err := l.faults.Err(); err != nil {
		return Set{}, err
	}
	return set, nil
}

// Read reads what each Reader finds in the files, without joining it into
// services: an SLO that needs a Remediation to be loaded is read all the same.
// There are no Readings beside Faults.
func Read(files []File, readers []Reader) ([]Reading, error) {
	l := newLoader()
	if complete := l.read(files, readers); complete {
		for _, r := range l.readings {
			l.add(r.Unresolved...)
		}
	}
	if err := l.faults.Err(); err != nil {
		return nil, err
	}
	return l.readings, nil
}

func newLoader() *loader {
	return &loader{byFormat: map[string][]Document{}, seen: map[Fault]bool{}}
}

// read gives each document to its reader. It reports whether all files could be
// read to their end.
func (l *loader) read(files []File, readers []Reader) (complete bool) {
	complete = true
	for _, f := range files {
		docs, faults, whole := documents(f)
		complete = complete && whole
		l.add(faults...)
		for _, d := range docs {
			l.sort(d, readers)
		}
	}
	for _, r := range readers {
		if docs := l.byFormat[r.APIVersion()]; len(docs) > 0 {
			reading, faults := r.Read(docs)
			reading.APIVersion = r.APIVersion()
			l.add(faults...)
			l.readings = append(l.readings, reading)
		}
	}
	return complete
}

// loader collects what the documents say, and every fault.
type loader struct {
	byFormat     map[string][]Document
	readings     []Reading
	remediations []remediation
	maintenances []limit[Maintenance]
	exceptions   []limit[Exception]
	faults       Faults
	seen         map[Fault]bool
	// remarks are notes that are found while the documents are joined.
	remarks []Note
}

// limit is a Maintenance or an Exception with the document that holds it.
type limit[T any] struct {
	value T
	doc   Document
}

// foreign are formats that people have, with what to do about each.
var foreign = map[string]string{
	"openslo/v1alpha":      "is not supported: write it as openslo/v1",
	"n9/v1alpha":           "(Nobl9) is not supported: write the SLO as openslo/v1",
	"openslo.com/v2alpha1": "is not supported: write it as openslo/v1",
}

// sort decides who reads a document.
func (l *loader) sort(d Document, readers []Reader) {
	if !d.root.IsMapping() {
		l.add(d.Fault("", "want a mapping with apiVersion and kind, got %s", describe(d.root.node)))
		return
	}
	if d.APIVersion == Group {
		l.own(d)
		return
	}
	key, format := d.format()
	formats := []string{Group}
	for _, r := range readers {
		if r.APIVersion() == format {
			l.byFormat[format] = append(l.byFormat[format], d)
			return
		}
		formats = append(formats, r.APIVersion())
	}
	switch what, known := foreign[format]; {
	case known:
		l.add(d.Fault(key, "%s %s", format, what))
	case format == "":
		l.add(d.Fault(key, "is required: every document says its format, e.g. %s", Group))
	default:
		l.add(d.Fault(key, "unknown format %q, %s", shorten(format), didYouMean(format, formats)))
	}
}

// format is what a document says that it is, and the key that says it: files
// of Sloth have a version where others have an apiVersion. A version without a
// group, such as 3, is something else's.
func (d Document) format() (key, format string) {
	if version := scalarAt(d.root.node, "version"); d.APIVersion == "" && strings.Contains(version, "/") {
		return "version", version
	}
	return "apiVersion", d.APIVersion
}

// add keeps one fault for each value: the first says it best.
func (l *loader) add(fs ...Fault) {
	for _, f := range fs {
		at := Fault{Pos: f.Pos, Path: f.Path}
		if f.Path == "" {
			at.Text = f.Text
		}
		if !l.seen[at] {
			l.seen[at] = true
			l.faults = append(l.faults, f)
		}
	}
}

// own reads one of Setpoint's own kinds.
func (l *loader) own(d Document) {
	switch d.Kind {
	case "Remediation":
		r, faults := readRemediation(d)
		l.add(faults...)
		l.remediations = append(l.remediations, r)
	case "Maintenance":
		m, faults := readMaintenance(d)
		l.add(faults...)
		l.maintenances = append(l.maintenances, limit[Maintenance]{m, d})
	case "Exception":
		e, faults := readException(d)
		l.add(faults...)
		l.exceptions = append(l.exceptions, limit[Exception]{e, d})
	case "":
		l.add(d.Fault("kind", "is required: Remediation, Maintenance or Exception"))
	default:
		l.add(d.Fault("kind", "unknown kind %q in %s, %s", shorten(d.Kind), Group,
			didYouMean(d.Kind, []string{"Remediation", "Maintenance", "Exception"})))
	}
}

// assemble joins what the documents say into services. It reports faults and
// goes on, so that one load names all of them.
func (l *loader) assemble() Set {
	set := Set{Services: l.services()}
	l.remediate(set)
	for _, m := range l.maintenances {
		set.Maintenances = append(set.Maintenances, m.value)
	}
	for _, e := range l.exceptions {
		set.Exceptions = append(set.Exceptions, e.value)
	}
	for _, r := range l.readings {
		set.Notes = append(set.Notes, r.Notes...)
	}
	l.checkNames(set)
	l.checkReferences(set)
	l.checkCycles(set)
	for i := range set.Services {
		l.checkService(&set.Services[i])
	}
	set.Notes = append(set.Notes, l.notes(set)...)
	l.digest(&set)
	sortSet(&set)
	return set
}

func sortSet(s *Set) {
	slices.SortFunc(s.Maintenances, func(a, b Maintenance) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Exceptions, func(a, b Exception) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(s.Notes, func(a, b Note) int {
		return cmp.Or(cmp.Compare(a.Pos.File, b.Pos.File), cmp.Compare(a.Pos.Line, b.Pos.Line))
	})
}

// services returns every declared or promised service with its objectives,
// sorted by name.
func (l *loader) services() []Service {
	byName := map[string]*Service{}
	at := func(name string) *Service {
		if byName[name] == nil {
			byName[name] = &Service{Name: name, Remediation: DefaultRemediation(name)}
		}
		return byName[name]
	}
	for _, r := range l.readings {
		for _, s := range r.Services {
			at(s.Name)
		}
		for _, o := range r.Objectives {
			ob := o.Objective
			ob.JudgeWindow, ob.BurnRates = DefaultJudgeWindow, DefaultBurnRates()
			svc := at(o.Service)
			svc.Objectives = append(svc.Objectives, ob)
		}
	}
	out := make([]Service, 0, len(byName))
	for _, name := range sortedKeys(byName) {
		svc := *byName[name]
		slices.SortStableFunc(svc.Objectives, func(a, b Objective) int { return cmp.Compare(a.ID, b.ID) })
		out = append(out, svc)
	}
	return out
}

// digest gives each service the digest of every document about it: its own,
// its objectives', its Remediation, and the Maintenances and Exceptions that
// name it, because taking one of those away loosens what may be done.
func (l *loader) digest(set *Set) {
	about := map[string][]string{}
	var all []string
	put := func(service, digest string) { about[service] = append(about[service], digest) }
	for _, r := range l.readings {
		for _, s := range r.Services {
			put(s.Name, s.Digest)
		}
		for _, o := range r.Objectives {
			about[o.Service] = append(about[o.Service], o.Digests...)
		}
	}
	for _, r := range l.remediations {
		put(r.value.Service, r.doc.Digest())
	}
	// Limits with an end are no part of what a service promises: one that is taken
	// out, as Setpoint asks for, must not make it a service that was never met.
	for _, m := range l.maintenances {
		all = append(all, m.doc.Digest())
	}
	for _, e := range l.exceptions {
		all = append(all, e.doc.Digest())
	}
	for i := range set.Services {
		set.Services[i].Digest = digestOf(about[set.Services[i].Name])
		all = append(all, about[set.Services[i].Name]...)
	}
	set.Digest = digestOf(all)
}
