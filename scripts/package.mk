# package.mk: what is given to others: a release tarball, Debian packages, a Python wheel. Included by the Makefile.
# SPDX-License-Identifier: Apache-2.0

COMMIT ?= HEAD
PYTHON ?= $(firstword $(wildcard build/venv/bin/python) python3)

.PHONY: dist deb wheel
dist: ## build/brevis-VERSION.tar.xz: the release of COMMIT (HEAD), always the same bytes
	@scripts/make-dist $(COMMIT) $(BUILD)
deb: ## build/deb: Debian packages, source and binary, of COMMIT (HEAD)
	@scripts/make-deb $(COMMIT) $(BUILD)
wheel: ## build/brevis-VERSION-*.whl: the Python package, with all that it needs but NumPy
	@rm -rf $(BUILD)/python-build $(BUILD)/brevis-*.whl
	@BREVIS_BUILD=$(BUILD) $(PYTHON) -m pip --disable-pip-version-check -q wheel --no-build-isolation --no-deps --no-index -w $(BUILD) ./python
	@ls $(BUILD)/brevis-*.whl
