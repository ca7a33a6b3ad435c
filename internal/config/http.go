package config

import (
	"reflect"
	"regexp"
	"strconv"
	"strings"

	promconfig "github.com/prometheus/common/config"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// HTTP are Prometheus's own keys for an HTTP client: TLS, proxy, basic
// authentication and so on.
type HTTP struct {
	promconfig.HTTPClientConfig
}

// SetDefaults takes the defaults of Prometheus.
func (h *HTTP) SetDefaults() { h.HTTPClientConfig = promconfig.DefaultHTTPClientConfig }

// Equal reports whether two subtrees say the same.
func (h HTTP) Equal(other HTTP) bool {
	return reflect.DeepEqual(h.HTTPClientConfig, other.HTTPClientConfig)
}

// libraryLine finds the line that the library names in its own numbering, and
// libraryType the Go type that means nothing to an author.
var (
	libraryLine = regexp.MustCompile(`^line (\d+): `)
	libraryType = regexp.MustCompile(` (in type \S+|into \S+)$`)
)

// UnmarshalValue hands the subtree to the library, which knows its keys, and
// moves the library's complaints to the author's lines.
func (h *HTTP) UnmarshalValue(v spec.Value) spec.Faults {
	if !v.IsMapping() {
		return spec.Faults{v.Fault("want a mapping of Prometheus's HTTP client keys")}
	}
	if faults := inlineSecrets(v); len(faults) > 0 {
		return faults
	}
	text, lines, err := v.YAML()
	if err != nil {
		return spec.Faults{v.Fault("%s", err)}
	}
	loaded, err := promconfig.LoadHTTPConfig(string(text))
	if err == nil {
		h.HTTPClientConfig = *loaded
		return nil
	}
	var faults spec.Faults
	for part := range strings.SplitSeq(strings.TrimPrefix(err.Error(), "yaml: "), "\n") {
		part = strings.TrimSpace(part)
		if part == "" || part == "unmarshal errors:" {
			continue
		}
		f := v.Fault("")
		if m := libraryLine.FindStringSubmatch(part); m != nil {
			n, _ := strconv.Atoi(m[1])
			f.Pos = lines(n)
			part = strings.TrimPrefix(part, m[0])
		}
		f.Text = libraryType.ReplaceAllString(part, "")
		faults = append(faults, f)
	}
	return faults
}

// withFile are the keys that would hold a secret in the open, with the key to
// use instead.
var withFile = map[string]string{
	"password":               "password_file",
	"credentials":            "credentials_file",
	"bearer_token":           "bearer_token_file",
	"client_secret":          "client_secret_file",
	"client_certificate_key": "client_certificate_key_file",
	"key":                    "key_file",
	"secrets":                "files",
}

func inlineSecrets(v spec.Value) spec.Faults {
	var faults spec.Faults
	for key, child := range v.Pairs() {
		if file, secret := withFile[key]; secret {
			faults = append(faults, child.Fault("a secret does not belong into this file: write it to a file of its own and use %s", file))
			continue
		}
		if strings.HasSuffix(key, "_ref") {
			faults = append(faults, child.Fault("there is no secret manager here: use %s_file", strings.TrimSuffix(key, "_ref")))
			continue
		}
		faults = append(faults, inlineSecrets(child)...)
	}
	return faults
}
