// Package model is an OpenAI-compatible endpoint whose brain is a rules file.
// It takes chat completion requests and decides from the evidence in the
// prompt alone, as a language model would have to. It is not one, and says so
// in its model name.
package model

import (
	"net/http"

	"github.com/setpoint-dev/setpoint/internal/propose/rules"
)

// Name is the model that it answers as.
const Name = "rules-file-behind-openai-api"

// Handler answers POST /v1/chat/completions and GET /v1/models.
func Handler(r *rules.Rules) http.Handler { panic("lab") }
