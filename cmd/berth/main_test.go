package main

import (
	"testing"

	"github.com/berth-go/berth/cmd/berth/internal/apptest"
)

func TestMain(m *testing.M) { apptest.Main(m, perform) }
