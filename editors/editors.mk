# Included by the Makefile at the root. The recipes install what they need.

.PHONY: editors-tools vsix editors-check editors-test editors-pictures

editors-tools: ## VS Code, Neovim and a browser for the editor tests, into .tools/
	tests/editors/install.sh

vsix: ## the VS Code extension, as editors/vscode/codekv.vsix
	tests/editors/install.sh extension

editors-check: ## types and unit tests of the VS Code extension
	tests/editors/install.sh extension
	cd editors/vscode && npm run --silent check && npm run --silent test

editors-test: editors-tools ## the real editors
	$(or $(PYTHON),python) -m pytest -m editor tests/editors

editors-pictures: editors-tools ## the pictures of the documentation, with the real model (needs tmux)
	CODEKV_SCREENSHOTS=1 $(or $(PYTHON),python) -m pytest tests/editors/test_vscode.py -k real_model
	$(or $(PYTHON),python) tests/editors/neovim_picture.py
