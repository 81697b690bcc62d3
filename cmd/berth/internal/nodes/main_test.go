package nodes_test

import (
	"testing"

	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/cmd/berth/internal/commands"
)

func TestMain(m *testing.M) { apptest.Main(m, commands.Execute) }
